"""An export as files: one of one image, or a folder of many; each whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from naclip.errors import OutputError, UsageError
from naclip.export.item import VOID, Classes, Item
from naclip.export.options import EVERYTHING, Options
from naclip.export.writer import Format, Part, files_of, line
from naclip.files import atomic


class Export:
    """Images one by one into a folder; or into a file, where the path has a suffix.

    Memory: one image, and the part of one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: Format,
        classes: Classes,
        options: Options = EVERYTHING,
        images: int = 1,
    ) -> None:
        """images: how many there will be, where that is known."""
        self.path = Path(path)
        self.count = 0
        self._format, self._classes, self._options = format, classes, options
        self._is_file = self.path.suffix != "" and not self.path.is_dir()
        names = files_of(format, Item(np.full((1, 1), VOID), classes, "image"), options)
        if self._is_file:
            _check_file(self.path, format, images, names)
        self._has_whole = format.gather is not None and not (self._is_file and names)
        self._parts = Spooled(tempfile.TemporaryFile("w+b"))  # noqa: SIM115  (closed at the end)

    def __enter__(self) -> Export:
        return self

    def __exit__(self, error: Any, *_: object) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            self._parts.file.close()

    def add(self, item: Item) -> None:
        made = self._format.make(item, self._options)
        for name, contents in made.files.items():
            self._write(name, [contents])
        if made.part is not None and self._has_whole:
            self._parts.add(made.part)
        self.count += 1

    def _finish(self) -> None:
        if self.count and self._has_whole and self._format.gather is not None:
            for name, pieces in self._format.gather(self._parts, self._classes, self._options):
                self._write(name, pieces)

    def _write(self, name: str, pieces: Iterable[bytes]) -> None:
        path = self.path if self._is_file else self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{path.parent}: cannot be made ({error.strerror})") from None
        with atomic(path) as file:
            file.writelines(pieces)


def _check_file(path: Path, format: Format, images: int, names: list[str]) -> None:
    if not format.suffix:
        raise UsageError(f"{path}: expected a folder: this format is several files")
    if path.suffix.lower() != format.suffix:
        raise UsageError(f"{path}: expected a file that ends in {format.suffix}, or a folder")
    if len(names) > 1 or (names and images > 1):
        what = "several files" if images == 1 else f"files of {images} images"
        raise UsageError(f"{path}: expected a folder for {what}, like {names[0]}")


class Spooled:
    """Parts on disk, a line each, gone through as often as needed."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def add(self, part: Part) -> None:
        self.file.write(line(part).encode() + b"\n")

    def __iter__(self) -> Iterator[Part]:
        """Each pass has its own place in the file: two of them may be under way."""
        place = 0
        while True:
            self.file.seek(place)
            row = self.file.readline()
            if not row:
                return
            place += len(row)
            yield json.loads(row)


def document(item: Item, format: Format, options: Options) -> bytes:
    """What the one file of one image holds."""
    made = format.make(item, options)
    if made.files or format.gather is None:
        (contents,) = made.files.values()
        return contents
    parts = [] if made.part is None else [made.part]
    ((_, pieces),) = format.gather(parts, item.classes, options)
    return b"".join(pieces)
