"""supervision's `Detections`: a region is a detection, with its mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from naclip.errors import MissingExtraError
from naclip.export.item import Item
from naclip.export.options import EVERYTHING, Options
from naclip.export.regions import regions

if TYPE_CHECKING:
    import supervision


def detections(item: Item, options: Options = EVERYTHING) -> supervision.Detections:
    """class_id is the class's number among those asked for; its name is in data["class_name"]."""
    try:
        from supervision import Detections
    except ImportError:
        raise MissingExtraError(
            "Detections need supervision: pip install 'naclip[export]'"
        ) from None
    found = list(regions(item, options))
    boxes = np.array([region.box for region in found], np.float32).reshape(-1, 4)
    boxes[:, 2:] += boxes[:, :2]
    masks = np.zeros((len(found), *item.size), np.bool_)
    for mask, region in zip(masks, found, strict=True):
        mask[region.window] = region.mask
    classes = item.classes
    data: dict[str, Any] = {"class_name": np.array([classes.names[r.label] for r in found], str)}
    scores = None
    if item.scores is not None:
        scores = np.array([region.score for region in found], np.float32)
    return Detections(
        xyxy=boxes,
        mask=masks,
        confidence=scores,
        class_id=np.array([classes.number(region.label) for region in found], np.int64),
        data=data,
    )
