"""`naclip demo`: the method on a scene drawn here, with the model that comes with the package."""

from naclip.demo.page import write_page
from naclip.demo.run import Demo, run

__all__ = ["Demo", "run", "write_page"]
