"""COCO's instances and stuff JSON: a region is an annotation, as run lengths or as polygons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.export.outlines import outlines
from naclip.export.regions import Region, counts, regions
from naclip.export.writer import Format, Made, Part, Parts, Whole, line, listed


def make(item: Item, options: Options) -> Made:
    return Made(
        part={
            "image": image_of(item),
            "annotations": [
                {
                    **described(region, item.classes),
                    "segmentation": rings(region, options) if options.polygons else packed(region),
                }
                for region in regions(item, options)
            ],
        }
    )


def image_of(item: Item) -> dict[str, Any]:
    height, width = item.size
    return {"file_name": item.name, "width": width, "height": height}


def described(region: Region, classes: Classes) -> dict[str, Any]:
    """What an annotation and a segment of panoptic COCO have in common."""
    made: dict[str, Any] = {
        "category_id": classes.number(region.label) + 1,
        "bbox": list(region.box),
        "area": region.area,
        "iscrowd": 0,
    }
    return made if region.score is None else {**made, "score": region.score}


def packed(region: Region) -> dict[str, Any]:
    """Run lengths as COCO packs them into text."""
    from pycocotools import mask

    height, width = region.size
    runs = mask.frPyObjects({"counts": counts(region), "size": [height, width]}, height, width)
    return {"size": [height, width], "counts": runs["counts"].decode("ascii")}


def rings(region: Region, options: Options) -> list[list[int]]:
    """COCO knows no holes, so there is a cut to each."""
    return [polygon.with_cuts().ravel().tolist() for polygon in outlines(region, options)]


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    del options
    yield "annotations/instances_default.json", _document(parts, classes)


def _document(parts: Parts, classes: Classes) -> Iterator[bytes]:
    yield from listed('{"images":[', images(parts), "\n],\n")
    yield from listed('"annotations":[', _annotations(parts), "\n],\n")
    yield f'"categories":{line(categories(classes))}}}\n'.encode()


def images(parts: Parts) -> Iterator[Part]:
    for number, part in enumerate(parts, start=1):
        yield {"id": number, **part["image"]}


def _annotations(parts: Parts) -> Iterator[Part]:
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
    "COCO JSON of instances or stuff",
    ".json",
    make,
    gather,
    needs=("pycocotools",),
    holes="in run lengths; polygons have cuts to them",
    scores="yes",
)
