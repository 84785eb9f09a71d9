"""labelme's JSON, one beside each image: masks, which keep holes, or polygons."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from naclip.export.item import Item
from naclip.export.options import Options
from naclip.export.outlines import outlines
from naclip.export.pngs import png
from naclip.export.regions import Region, regions
from naclip.export.writer import Format, Made

VERSION = "5.4.1"  # the first ones without masks are older


def make(item: Item, options: Options) -> Made:
    height, width = item.size
    document: dict[str, Any] = {
        "version": VERSION,
        "flags": {},
        "shapes": [
            {"label": item.classes.names[region.label], **shape, **_about(region, number)}
            for number, region in enumerate(regions(item, options))
            for shape in (_polygons(region, options) if options.polygons else [_mask(region)])
        ],
        "imagePath": PurePosixPath(item.name).name,
        "imageData": None,
        "imageHeight": height,
        "imageWidth": width,
    }
    text = json.dumps(document, ensure_ascii=False, indent=1)
    return Made({f"{item.stem}.json": text.encode() + b"\n"})


def _about(region: Region, number: int) -> dict[str, Any]:
    """Shapes of one region are a group; labelme keeps keys that it does not know."""
    about: dict[str, Any] = {"group_id": number, "description": "", "flags": {}}
    return about if region.score is None else {**about, "score": region.score}


def _mask(region: Region) -> dict[str, Any]:
    """Its corners are pixels, the last one included."""
    left, top, width, height = region.box
    return {
        "shape_type": "mask",
        "points": [[left, top], [left + width - 1, top + height - 1]],
        "mask": base64.b64encode(png(region.mask)).decode("ascii"),
    }


def _polygons(region: Region, options: Options) -> Iterator[dict[str, Any]]:
    for polygon in outlines(region, options):
        points = polygon.with_cuts().tolist()
        yield {"shape_type": "polygon", "points": points, "mask": None}


FORMAT = Format(
    "labelme JSON, one beside each image",
    ".json",
    make,
    holes="in masks; polygons have cuts to them",
    scores="kept by labelme, not shown",
)
