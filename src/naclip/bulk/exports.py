"""Other tools' formats: an image's files by workers, those of the whole data set at the end.

Workers write the parts of a chunk, a line an image; the data set's files are put together from
those, in the order of the items, when all are there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from naclip.bulk import inputs
from naclip.bulk.chunks import Chunk
from naclip.bulk.stores import Store, is_text
from naclip.errors import ImageError
from naclip.export import formats
from naclip.export.item import VOID, Classes, Item
from naclip.export.options import EVERYTHING, Options
from naclip.export.writer import Made, Part, files_of, line

if TYPE_CHECKING:
    from naclip.results import Segmentation

FOLDER = "exports"
PARTS = ".naclip/parts"

Images: TypeAlias = Mapping[int, Mapping[str, Made]]  # position in the chunk -> format -> made


@dataclass(frozen=True)
class Exports:
    formats: tuple[str, ...] = ()
    options: Options = EVERYTHING

    def check(self) -> None:
        for name in self.formats:
            formats.find(name)

    @property
    def needs(self) -> list[str]:
        """Libraries that determine what is written."""
        return sorted({need for name in self.formats for need in formats.find(name).needs})


def make(
    asked: Exports, chunk: Chunk, results: Mapping[int, Segmentation], classes: Classes
) -> tuple[Images, dict[int, str]]:
    """What each image adds; and why an image cannot be written in a format."""
    made: dict[int, dict[str, Made]] = {}
    failed: dict[int, str] = {}
    for at, result in results.items() if asked.formats else ():
        item = _item(chunk.items[at], classes, result)
        try:
            made[at] = {
                name: formats.find(name).make(item, asked.options) for name in asked.formats
            }
        except ImageError as error:
            failed[at] = str(error)
    return made, failed


def _item(item: inputs.Item, classes: Classes, result: Segmentation | None) -> Item:
    return Item(
        np.full((1, 1), VOID) if result is None else result.labels,
        classes,
        item.name,
        item.target,
        None if result is None else result.scores,
        partial(inputs.read, item),
        None if result is None else result.image,
    )


def names_of(asked: Exports, item: inputs.Item, classes: Classes) -> Iterator[str]:
    """The files of an image."""
    for name in asked.formats if is_text(item.name) else ():  # of others there are none
        for file in files_of(formats.find(name), _item(item, classes, None), asked.options):
            yield f"{FOLDER}/{name}/{file}"


def write(
    store: Store, asked: Exports, chunk: Chunk, made: Images, classes: Classes
) -> Iterator[str]:
    """The names of what was written or deleted."""
    for at, item in enumerate(chunk.items):
        for file in names_of(asked, item, classes) if at not in made else ():
            store.delete(file)  # of an earlier try, with an image that was good then
            yield file
    for name in asked.formats:
        parts = []
        for _, of_image in sorted(made.items()):
            for file, contents in of_image[name].files.items():
                store.write(f"{FOLDER}/{name}/{file}", contents)
                yield f"{FOLDER}/{name}/{file}"
            parts.append(of_image[name].part)
        if formats.find(name).gather is not None:
            lines = "".join(line(part) + "\n" for part in parts if part is not None)
            store.write(_parts_name(name, chunk.number), lines.encode())
            yield _parts_name(name, chunk.number)


def _parts_name(format: str, chunk: int) -> str:
    return f"{PARTS}/{format}/{chunk // 1000:05d}/{chunk:08d}.jsonl"


@dataclass(frozen=True)
class Parts:
    """Of all images, in order; of one chunk at a time."""

    store: Store
    format: str
    chunks: int

    def __iter__(self) -> Iterator[Part]:
        for chunk in range(self.chunks):
            data = self.store.read(_parts_name(self.format, chunk)) or b""
            yield from map(json.loads, data.splitlines())


def write_whole(
    store: Store, asked: Exports, chunks: int, classes: Classes, tell: Callable[[str], None]
) -> Iterator[str]:
    """The data set's files: the same bytes whenever and wherever they are made; their names."""
    for name in asked.formats:
        gather = formats.find(name).gather
        if gather is None:
            continue
        for file, pieces in gather(Parts(store, name, chunks), classes, asked.options):
            tell(f"{FOLDER}/{name}/{file}")
            store.write_pieces(f"{FOLDER}/{name}/{file}", pieces)
            yield f"{FOLDER}/{name}/{file}"
