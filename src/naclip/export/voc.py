"""Pascal VOC's segmentation: 0 background, 1... classes, 255 void, in VOC's own colours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from naclip.errors import ImageError, SettingsError
from naclip.export.item import VOID, Classes, Item
from naclip.export.options import Options
from naclip.export.pngs import png, voc_palette
from naclip.export.regions import regions
from naclip.export.writer import Format, Made, Parts, Whole

UNKNOWN = 255
MOST = UNKNOWN - 1  # classes of a data set, and parts of an image


def make(item: Item, options: Options) -> Made:
    check(item.classes)
    classes = np.zeros(item.size, np.uint8)
    objects = np.zeros(item.size, np.uint8)
    for number, region in enumerate(regions(item, options), start=1):
        classes[region.window][region.mask] = item.classes.number(region.label) + 1
        if options.instances:
            if number > MOST:
                raise ImageError(
                    f"{item.name}: more than {MOST} parts, and VOC has no number for more: "
                    "raise min_pixels or leave instances out"
                )
            objects[region.window][region.mask] = number
    files = {f"SegmentationClass/{item.stem}.png": _with_void(classes, item)}
    if options.instances:
        files[f"SegmentationObject/{item.stem}.png"] = _with_void(objects, item)
    return Made(files, {"stem": item.stem})


def check(classes: Classes) -> None:
    if len(classes.things) > MOST:
        raise SettingsError(
            f"{len(classes.things)} classes: VOC's 8-bit files have room for {MOST}; use "
            "format coco or datasets"
        )


def _with_void(pixels: NDArray[np.uint8], item: Item) -> bytes:
    return png(np.where(item.labels == VOID, np.uint8(UNKNOWN), pixels), voc_palette())


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    del options
    yield "labelmap.txt", _label_map(classes)
    yield "ImageSets/Segmentation/default.txt", (f"{part['stem']}\n".encode() for part in parts)


def _label_map(classes: Classes) -> Iterator[bytes]:
    """name:red,green,blue:parts:actions, as CVAT and Datumaro read it."""
    yield b"# label:color_rgb:parts:actions\n"
    named = ("background", *(name.replace(":", " ") for name in classes.things))
    for name, colour in zip(named, voc_palette().tolist(), strict=False):
        yield f"{name}:{','.join(map(str, colour))}::\n".encode()
    yield f"ignored:{','.join(map(str, voc_palette()[UNKNOWN].tolist()))}::\n".encode()


FORMAT = Format(
    "Pascal VOC: index PNG in VOC's palette, 255 for void",
    ".png",
    make,
    gather,
    instances="SegmentationObject",
)
