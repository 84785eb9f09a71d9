"""COCO's instances and stuff JSON: a region is an annotation, as run lengths or as polygons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.export.regions import Region, counts, regions
from naclip.export.writer import Format, Made, Part, Parts, Whole, line, listed


def make(item: Item, options: Options) -> Made:
    height, width = item.size
    image = {"file_name": item.name, "width": width, "height": height}
    annotations = [_annotation(region, item.classes) for region in regions(item, options)]
    return Made(part={"image": image, "annotations": annotations})


def _annotation(region: Region, classes: Classes) -> dict[str, Any]:
    made: dict[str, Any] = {
        "category_id": classes.number(region.label) + 1,
        "bbox": list(region.box),
        "area": region.area,
        "iscrowd": 0,
        "segmentation": compressed(region),
    }
    return made if region.score is None else {**made, "score": region.score}


def compressed(region: Region) -> dict[str, Any]:
    """Run lengths as COCO packs them into text."""
    from pycocotools import mask

    height, width = region.size
    packed = mask.frPyObjects({"counts": counts(region), "size": [height, width]}, height, width)
    return {"size": [height, width], "counts": packed["counts"].decode("ascii")}


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    del options
    yield "annotations.json", _document(parts, classes)


def _document(parts: Parts, classes: Classes) -> Iterator[bytes]:
    images = ({"id": number, **part["image"]} for number, part in enumerate(parts, start=1))
    yield from listed('{"images":[', images, "\n],\n")
    yield from listed('"annotations":[', _numbered(parts), "\n],\n")
    yield f'"categories":{line(categories(classes))}}}\n'.encode()


def _numbered(parts: Parts) -> Iterator[Part]:
    number = 0
    for image, part in enumerate(parts, start=1):
        for annotation in part["annotations"]:
            number += 1
            yield {"id": number, "image_id": image, **annotation}


def categories(classes: Classes) -> list[dict[str, Any]]:
    return [
        {"id": number, "name": name, "supercategory": ""}
        for number, name in enumerate(classes.things, start=1)
    ]


FORMAT = Format(
    "COCO JSON: instances or stuff, run lengths or polygons",
    ".json",
    make,
    gather,
    needs=("pycocotools",),
    scores="yes",
)
