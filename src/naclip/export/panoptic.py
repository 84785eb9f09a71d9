"""COCO's panoptic format: a PNG whose colours are numbers of segments, and a JSON about those."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from naclip.export import coco
from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.export.pngs import png
from naclip.export.regions import regions
from naclip.export.writer import Format, Made, Part, Parts, Whole, line, listed

BASE = "annotations/panoptic_default"


def make(item: Item, options: Options) -> Made:
    numbers = np.zeros(item.size, np.uint32)  # 0 is what COCO calls void
    segments = []
    for number, region in enumerate(regions(item, options), start=1):
        numbers[region.window][region.mask] = number
        segments.append({"id": number, **coco.described(region, item.classes)})
    colours = np.stack([numbers >> shift & 255 for shift in (0, 8, 16)], 2).astype(np.uint8)
    name = f"{item.stem}.png"
    return Made(
        {f"{BASE}/{name}": png(colours)},
        {"image": coco.image_of(item), "file_name": name, "segments_info": segments},
    )


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    yield f"{BASE}.json", _document(parts, classes, options)


def _document(parts: Parts, classes: Classes, options: Options) -> Iterator[bytes]:
    yield from listed('{"images":[', coco.images(parts), "\n],\n")
    yield from listed('"annotations":[', _annotations(parts), "\n],\n")
    colours = classes.colours()[classes.first :].tolist()
    categories = [
        {**category, "isthing": int(options.instances), "color": colour}
        for category, colour in zip(coco.categories(classes), colours, strict=True)
    ]
    yield f'"categories":{line(categories)}}}\n'.encode()


def _annotations(parts: Parts) -> Iterator[Part]:
    for image, part in enumerate(parts, start=1):
        yield {
            "image_id": image,
            "file_name": part["file_name"],
            "segments_info": part["segments_info"],
        }


FORMAT = Format(
    "COCO panoptic: PNG files of segments and their JSON",
    "",
    make,
    gather,
    scores="yes",
)
