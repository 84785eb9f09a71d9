"""Masks that are on disk already -> any of the formats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from naclip.errors import DataError
from naclip.export import formats, masks
from naclip.export.options import Options
from naclip.export.saving import Export


def convert(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    format: str,
    *,
    classes: str | os.PathLike[str] | None = None,
    images: str | os.PathLike[str] | None = None,
    void: int | None = None,
    **options: Any,
) -> int:
    """The output of `naclip batch`, or a folder of index PNGs; how many masks there were.

    classes  a file of words, label 0 first; of a batch they are known
    images   the folder of the images: names with their suffixes, georeferences
    void     the value of pixels of no class; by default 255, or 65535 of 16 bits
    options  instances, min_pixels, polygons, simplify: naclip.export.options
    """
    folder = Path(source)
    if not folder.is_dir():
        raise DataError(f"{source}: no such folder of masks")
    found, chosen = formats.find(format), Options.of(options)
    known = masks.classes_of(folder, None if classes is None else os.fspath(classes))
    with Export(output, found, known, chosen) as export:
        for item in masks.items(folder, known, None if images is None else Path(images), void):
            export.add(item)
    return export.count
