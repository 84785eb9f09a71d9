"""naclip as a CVAT detector: nuclio calls init_context once, and handler for each image.

CVAT sends an image in base64. It wants a list of regions; a mask is its pixels, 0 or 1, row by row
within the box, and then the box: left, top, right and bottom, the last ones included.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml

import naclip
from naclip.errors import NaclipError
from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.export.outlines import Polygon, outlines
from naclip.export.regions import Region, regions

FUNCTION = "/opt/nuclio/function.yaml"  # where nuclio puts it
PARTS = Options(instances=True, min_pixels=16)  # each connected part is a shape; no crumbs


def init_context(context: Any) -> None:
    text = Path(os.environ.get("NACLIP_FUNCTION", FUNCTION)).read_text("utf-8")
    labels = json.loads(yaml.safe_load(text)["metadata"]["annotations"]["spec"])
    words = {label["name"]: label.get("naclip", [label["name"]]) for label in labels}
    context.user_data.words = words
    context.user_data.segmenter = naclip.load(os.environ.get("NACLIP_MODEL", "ViT-B/16"))
    context.logger.info(f"naclip knows {', '.join(words)}")


def handler(context: Any, event: Any) -> Any:
    try:
        least = float(event.body.get("threshold") or 0)
        image = base64.b64decode(event.body["image"])
        # Labels are seldom of everything that is in an image: the rest is background.
        result = context.user_data.segmenter(image, context.user_data.words, background=True)
    except (NaclipError, AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        context.logger.warn(reason)
        return context.Response(body=reason, content_type="text/plain", status_code=422)
    item = Item.of(result)
    found = [shape(region, item.classes) for region in regions(item, PARTS)]
    kept = [row for row in found if float(row["confidence"]) >= least]
    return context.Response(body=json.dumps(kept), content_type="application/json", status_code=200)


def area(polygon: Polygon) -> float:
    return cv2.contourArea(polygon.with_cuts().astype(np.float32))


def shape(region: Region, classes: Classes) -> dict[str, Any]:
    left, top, width, height = region.box
    pixels = region.mask.astype(int).ravel().tolist()
    # Where CVAT is told to turn masks into polygons, it takes the points.
    largest = max(outlines(region, Options(simplify=1.0)), key=area)
    return {
        "label": classes.names[region.label],
        "confidence": str(region.score),
        "type": "mask",
        "mask": [*pixels, left, top, left + width - 1, top + height - 1],
        "points": largest.with_cuts().ravel().tolist(),
    }
