"""Label every pixel of an image with words of your own choosing.

import naclip
segment = naclip.load("ViT-B/16")
result = segment("street.jpg", ["road", "car", "person=pedestrian,rider"])
result.save("mask.png")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from naclip.bulk.cluster import RayCluster as RayCluster
    from naclip.bulk.rows import BatchSegmenter as BatchSegmenter
    from naclip.bulk.run import batch as batch
    from naclip.client import Client as Client
    from naclip.errors import NaclipError as NaclipError
    from naclip.export.convert import convert as convert
    from naclip.pipeline import Segmenter as Segmenter
    from naclip.pipeline import load as load
    from naclip.results import Report as Report
    from naclip.results import Segmentation as Segmentation
    from naclip.settings import Settings as Settings
    from naclip.vocabulary import Vocabulary as Vocabulary

__version__ = "0.1.0"

_HOMES = {  # public names, imported when first used: `import naclip` does not wait for torch
    "Client": "naclip.client",
    "BatchSegmenter": "naclip.bulk.rows",
    "NaclipError": "naclip.errors",
    "RayCluster": "naclip.bulk.cluster",
    "Report": "naclip.results",
    "Segmentation": "naclip.results",
    "Segmenter": "naclip.pipeline",
    "Settings": "naclip.settings",
    "Vocabulary": "naclip.vocabulary",
    "batch": "naclip.bulk.run",
    "convert": "naclip.export.convert",
    "load": "naclip.pipeline",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'naclip' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
