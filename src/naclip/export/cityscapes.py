"""Files as Cityscapes has them: labelIds, colours, and instanceIds of parts.

A class that is called as one of Cityscapes' has its id and colour there; all others have ids from
34 on, in the order of the classes, and naclip's colours. 0 is what is not labelled: background,
void, and regions that are too small. `labels.json` says which id is which class.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import numpy as np

from naclip.errors import ImageError, SettingsError
from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.export.pngs import png
from naclip.export.regions import regions
from naclip.export.writer import Format, Made, Parts, Whole

FOLDER = "gtFine"
FIRST, LAST = 34, 255  # ids of classes that Cityscapes does not have
OF_PART = 1000  # instanceId = id * 1000 + number of the part
# Of the classes that are evaluated: id and colour.
OFFICIAL: dict[str, tuple[int, tuple[int, ...]]] = {
    "road": (7, (128, 64, 128)),
    "sidewalk": (8, (244, 35, 232)),
    "building": (11, (70, 70, 70)),
    "wall": (12, (102, 102, 156)),
    "fence": (13, (190, 153, 153)),
    "pole": (17, (153, 153, 153)),
    "traffic light": (19, (250, 170, 30)),
    "traffic sign": (20, (220, 220, 0)),
    "vegetation": (21, (107, 142, 35)),
    "terrain": (22, (152, 251, 152)),
    "sky": (23, (70, 130, 180)),
    "person": (24, (220, 20, 60)),
    "rider": (25, (255, 0, 0)),
    "car": (26, (0, 0, 142)),
    "truck": (27, (0, 0, 70)),
    "bus": (28, (0, 60, 100)),
    "train": (31, (0, 80, 100)),
    "motorcycle": (32, (0, 0, 230)),
    "bicycle": (33, (119, 11, 32)),
}
KNOWN = {name.replace(" ", ""): entry for name, entry in OFFICIAL.items()}


def ids(classes: Classes) -> list[tuple[int, tuple[int, ...]]]:
    """(id, colour) of each class, by its number."""
    found: list[tuple[int, tuple[int, ...]]] = []
    free = FIRST
    for name, colour in zip(classes.things, classes.colours()[classes.first :], strict=True):
        key = name.lower().replace(" ", "")
        if key in KNOWN and KNOWN[key] not in found:
            found.append(KNOWN[key])
            continue
        found.append((free, tuple(colour.tolist())))
        free += 1
    if free > LAST + 1:
        raise SettingsError(
            f"{free - FIRST} classes that Cityscapes does not have: its 8-bit files have room for "
            f"{LAST + 1 - FIRST}; use format coco or datasets"
        )
    return found


def make(item: Item, options: Options) -> Made:
    known = ids(item.classes)
    labels = np.zeros(item.size, np.uint8)
    colours = np.zeros((*item.size, 3), np.uint8)
    parts = np.zeros(item.size, np.uint16)
    seen: Counter[int] = Counter()
    for region in regions(item, options):
        number, colour = known[item.classes.number(region.label)]
        labels[region.window][region.mask] = number
        colours[region.window][region.mask] = colour
        if options.instances:
            _check_part(item, number, seen[number])
            parts[region.window][region.mask] = number * OF_PART + seen[number]
            seen[number] += 1
    base = f"{FOLDER}/{item.stem}_{FOLDER}"
    files = {f"{base}_labelIds.png": png(labels), f"{base}_color.png": png(colours)}
    if options.instances:
        files[f"{base}_instanceIds.png"] = png(parts)
    return Made(files)


def _check_part(item: Item, number: int, part: int) -> None:
    if part >= OF_PART or number * OF_PART + part > np.iinfo(np.uint16).max:
        raise ImageError(
            f"{item.name}: part {part} of the class with id {number} has no instanceId below "
            "65536: use fewer classes, raise min_pixels or leave instances out"
        )


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    del parts, options
    rows = [
        {"id": number, "name": name, "color": colour}
        for name, (number, colour) in zip(classes.things, ids(classes), strict=True)
    ]
    yield "labels.json", iter([json.dumps(rows, indent=1, ensure_ascii=False).encode() + b"\n"])


FORMAT = Format(
    "Cityscapes: labelIds and colours, instanceIds of parts",
    "",
    make,
    gather,
    instances="instanceIds",
)
