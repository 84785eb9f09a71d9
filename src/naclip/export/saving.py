"""An export as files: one of one image, or a folder of many; each whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from naclip.errors import OutputError, UsageError
from naclip.export.item import Classes, Item
from naclip.export.options import EVERYTHING, Options
from naclip.export.writer import Format, Part, line
from naclip.files import atomic


def save_one(item: Item, format: Format, path: str | os.PathLike[str], options: Options) -> None:
    """The file that an export of one image is."""
    names, contents = zip(*one(item, format, options), strict=True)
    if len(names) > 1 or not format.suffix:
        raise UsageError(f"{path}: this is several files ({', '.join(names)}): name a folder")
    if Path(path).suffix.lower() != format.suffix:
        raise UsageError(f"{path}: expected a file that ends in {format.suffix}, or a folder")
    with atomic(path) as file:
        file.write(contents[0])


def one(item: Item, format: Format, options: Options) -> list[tuple[str, bytes]]:
    """(name, contents): of an image; where a format has none for it, of a data set of one image."""
    made = format.make(item, options)
    if made.files or format.gather is None:
        return list(made.files.items())
    parts = [] if made.part is None else [made.part]
    whole = format.gather(parts, item.classes, options)
    return [(name, b"".join(pieces)) for name, pieces in whole]


def save_many(
    items: Iterable[Item],
    classes: Classes,
    format: Format,
    folder: str | os.PathLike[str],
    options: Options = EVERYTHING,
) -> int:
    """All files of a data set; how many images there were. Memory: one image, and one part."""
    count = 0
    with tempfile.TemporaryFile("w+b") as file:
        parts = Spooled(file)
        for item in items:
            made = format.make(item, options)
            for name, contents in made.files.items():
                _write(Path(folder, name), [contents])
            if made.part is not None:
                parts.add(made.part)
            count += 1
        if format.gather is not None:
            for name, pieces in format.gather(parts, classes, options):
                _write(Path(folder, name), pieces)
    return count


class Spooled:
    """Parts on disk, a line each, gone through as often as needed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add(self, part: Part) -> None:
        self._file.write(line(part).encode() + b"\n")

    def __iter__(self) -> Iterator[Part]:
        """Each pass has its own place in the file: two of them may be under way."""
        place = 0
        self._file.flush()
        while True:
            self._file.seek(place)
            row = self._file.readline()
            if not row:
                return
            place = self._file.tell()
            yield json.loads(row)


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path.parent}: cannot be made ({error.strerror})") from None
    with atomic(path) as file:
        file.writelines(pieces)
