"""Rows of Hugging Face's `datasets`: a folder that its `imagefolder` loads, or rows in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naclip.export.item import VOID, Classes, Item, score_of
from naclip.export.options import EVERYTHING, Options
from naclip.export.pngs import png
from naclip.export.regions import regions
from naclip.export.writer import Format, Made, Parts, Whole, line


def make(item: Item, options: Options) -> Made:
    """The image's own file, if it is at hand, and the mask: labels, as naclip writes them."""
    files = {f"masks/{item.stem}.png": png(mask(item, options))}
    row: dict[str, Any] = {"mask_file_name": f"masks/{item.stem}.png"}
    if item.read is not None:
        suffix = PurePosixPath(item.name).suffix
        row["image_file_name"] = f"images/{item.stem.removesuffix(suffix)}{suffix}"
        files[row["image_file_name"]] = item.read()
    elif item.image is not None:
        row["image_file_name"] = f"images/{item.stem}.png"
        files[row["image_file_name"]] = png(item.image)
    return Made(files, {**row, **_columns(item, options)})


def row(item: Item, options: Options = EVERYTHING) -> dict[str, Any]:
    """The same with pictures in memory: for `datasets.Dataset.from_list`."""
    from PIL import Image

    pictures: dict[str, Any] = {"mask": Image.open(io.BytesIO(png(mask(item, options))))}
    if item.image is not None:
        pictures["image"] = Image.fromarray(item.image)
    return {**pictures, **_columns(item, options)}


def mask(item: Item, options: Options) -> NDArray[Any]:
    """Labels without the regions that are too small: 8 bits and 255 for void, or 16 and 65535."""
    labels = item.labels
    if options.min_pixels > 1:
        rest = 0 if item.classes.has_background else VOID
        kept = np.full_like(labels, rest)
        for region in regions(item, options):
            kept[region.window][region.mask] = region.label
        labels = np.where(labels == VOID, np.uint16(VOID), kept)
    if len(item.classes.names) >= 256:
        return labels
    return np.where(labels == VOID, 255, labels).astype(np.uint8)


def _columns(item: Item, options: Options) -> dict[str, Any]:
    labels = mask(item, options)
    there = [label for label in np.unique(labels).tolist() if label < len(item.classes.names)]
    covered = {label: labels == label for label in there}
    return {
        "name": item.name,
        "labels": there,
        "classes": [item.classes.names[label] for label in there],
        "coverage": [round(float(where.mean()), 6) for where in covered.values()],
        "scores": [score_of(item.scores, where) for where in covered.values()],
    }


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    del options
    yield "metadata.jsonl", ((line(part) + "\n").encode() for part in parts)
    yield "classes.txt", ((name + "\n").encode() for name in classes.names)


FORMAT = Format(
    "Hugging Face datasets: a folder of images, masks and metadata.jsonl",
    "",
    make,
    gather,
    scores="mean of a class",
    instances="no",
)
