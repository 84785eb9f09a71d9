"""What a format is: files of an image, and files of the data set put together from a part of each.

    make    one image -> its files, and its part (anything JSON can say) of the data set's files
    gather  the parts of all images, in order -> the data set's files, piece by piece

`make` knows of one image only, so it runs wherever the image is: in this process, in a thread of
`naclip batch`, on another machine. Whatever counts over images (ids) is given by `gather`, which
holds one part at a time. Both depend on their arguments alone: the same export, the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from naclip.errors import MissingExtraError
from naclip.export.item import Classes, Item
from naclip.export.options import Options

Part = Mapping[str, Any]
Parts = Iterable[Part]  # in the order of the images; may be gone through several times
Whole = tuple[str, Iterator[bytes]]  # a file's name in the export's folder, and its pieces


@dataclass(frozen=True)
class Made:
    """What one image adds to an export."""

    files: Mapping[str, bytes] = field(default_factory=dict)  # by name in the export's folder
    part: Part | None = None


@dataclass(frozen=True)
class Format:
    about: str
    suffix: str  # of the one file that an export of one image is; "": it is several files
    make: Callable[[Item, Options], Made]
    gather: Callable[[Parts, Classes, Options], Iterator[Whole]] | None = None
    needs: tuple[str, ...] = ()  # modules that are not among naclip's own dependencies
    extra: str = "export"  # of pip, that brings them
    holes: str = "yes"  # what becomes of holes, scores and parts of a class: for docs and lists
    scores: str = "no"
    instances: str = "yes"

    def check(self, name: str) -> None:
        """Before any work: what it needs is there."""
        for module in self.needs:
            if find_spec(module) is None:
                raise MissingExtraError(
                    f"format {name} needs {module}: pip install 'naclip[{self.extra}]'"
                )


def files_of(format: Format, item: Item, options: Options) -> list[str]:
    """What the files of an image are called; its pixels do not matter, and are not looked at."""
    return list(format.make(item.blank(), options).files)


def line(value: Any) -> str:
    """JSON as short as it can be, and the same for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def listed(head: str, values: Iterable[Any], foot: str) -> Iterator[bytes]:
    """A JSON list, a value a line: `"annotations":[...]`."""
    yield head.encode()
    for number, value in enumerate(values):
        yield (("," if number else "") + "\n" + line(value)).encode()
    yield foot.encode()
