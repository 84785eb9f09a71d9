"""YOLO's segmentation text: a line is a class and the outline of one part, in shares of the image.

A line is one outline, so a class in three places is three lines with or without `instances`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.export.outlines import Ring, outlines
from naclip.export.regions import regions
from naclip.export.writer import Format, Made, Parts, Whole


def make(item: Item, options: Options) -> Made:
    lines = [
        f"{item.classes.number(region.label)} {_shares(polygon.with_cuts(), item.size)}\n"
        for region in regions(item, options)
        for polygon in outlines(region, options)
    ]
    return Made({f"labels/{item.stem}.txt": "".join(lines).encode()})


def _shares(ring: Ring, size: tuple[int, int]) -> str:
    """Digits enough for the pixel's edge in an image of a million pixels a side."""
    height, width = size
    return " ".join(f"{x / width:.8g} {y / height:.8g}" for x, y in ring.tolist())


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    del parts, options
    yield "data.yaml", _yaml(classes)


def _yaml(classes: Classes) -> Iterator[bytes]:
    yield b"path: .  # put the images into images/, beside labels/\ntrain: images\nval: images\n"
    yield b"names:\n"
    for number, name in enumerate(classes.things):
        yield f"  {number}: {json.dumps(name, ensure_ascii=False)}\n".encode()


FORMAT = Format(
    "YOLO segmentation text and data.yaml",
    ".txt",
    make,
    gather,
    holes="cuts to them",
    instances="a line is a part",
)
