"""naclip as a CVAT auto-annotation function, for a CVAT of any kind and no container: docs/cvat.md.

cvat-cli task auto-annotate TASK --function-file auto_annotate.py -p 'words=str:car,van;sofa,couch'
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cv2
import cvat_sdk.auto_annotation as cvataa
import numpy as np
from cvat_sdk.masks import encode_mask
from PIL import Image

import naclip
from naclip.export.item import Item
from naclip.export.options import Options
from naclip.export.outlines import outlines
from naclip.export.regions import regions
from naclip.vocabulary import parse_class

PARTS = Options(instances=True, min_pixels=16)  # each connected part is a shape; no crumbs


class Function:
    def __init__(self, words: dict[str, tuple[str, ...]], model: str) -> None:
        self.words = words
        self.segmenter = naclip.load(model)
        labels = [cvataa.label_spec(name, number) for number, name in enumerate(words)]
        self.spec = cvataa.DetectionFunctionSpec(labels=labels)

    def detect(self, context: cvataa.DetectionFunctionContext, image: Image.Image) -> list[Any]:
        # Labels are seldom of everything that is in an image: the rest is background.
        result = self.segmenter(np.asarray(image.convert("RGB")), self.words, background=True)
        return list(self._shapes(context, Item.of(result)))

    def _shapes(self, context: cvataa.DetectionFunctionContext, item: Item) -> Iterator[Any]:
        for region in regions(item, PARTS):
            if region.score is None or region.score < (context.conf_threshold or 0):
                continue
            label = item.classes.number(region.label)
            if context.conv_mask_to_poly:
                for polygon in outlines(region, Options(simplify=1.0)):
                    ring = polygon.with_cuts()
                    # What touches a part at a corner only is a polygon of its own.
                    if cv2.contourArea(ring.astype(np.float32)) >= PARTS.min_pixels:
                        points = ring.ravel().tolist()
                        yield cvataa.polygon(label, points, score=region.score)
            else:
                yield cvataa.mask(label, encode_mask(region.full()), score=region.score)


def create(words: str, model: str = "ViT-B/16") -> Function:
    """words: a label and its synonyms with commas, the next label after a semicolon."""
    return Function(dict(parse_class(part) for part in words.split(";")), model)
