"""What the values of the official masks mean: raw value -> label, for each benchmark.

Written from the owners' definitions: cityscapesScripts' labels.py, COCO-Stuff's labels.txt, the
development kits of VOC and ADE20K. Values that no definition knows are errors, not void.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naclip.errors import DataError
from naclip.evaluate.metric import VOID, Truth

UNKNOWN = VOID - 1
VOID_VALUE = 255  # in the masks of all benchmarks


@dataclass(frozen=True, eq=False)
class LabelMap:
    """Value of a mask -> label; `known` describes the values for messages."""

    table: Truth  # (65536,)
    known: str

    def __call__(self, raw: NDArray[Any], path: Path) -> Truth:
        labels = self.table[raw]
        if (labels == UNKNOWN).any():
            value = int(raw[labels == UNKNOWN].flat[0])
            raise DataError(f"{path}: a pixel has the value {value}: expected {self.known}")
        return labels


def mapping(labels: Mapping[int, int], void: Iterable[int], known: str) -> LabelMap:
    table = np.full(65536, UNKNOWN, np.uint16)
    table[list(void)] = VOID
    table[list(labels)] = list(labels.values())
    return LabelMap(table, known)


def _in_order(values: Iterable[int], first: int = 0) -> dict[int, int]:
    return {value: first + index for index, value in enumerate(values)}


# VOC: 0 background, 1..20 the classes, 255 the border between objects.
VOC21 = mapping(_in_order(range(21)), [255], "0..20 or 255")
VOC20 = mapping(_in_order(range(1, 21)), [0, 255], "0..20 or 255")

# PASCAL Context as the 60-class maps have it: 0 is whatever is none of the 59.
CONTEXT60 = mapping(_in_order(range(60)), [255], "0..59 or 255")
CONTEXT59 = mapping(_in_order(range(1, 60)), [0, 255], "0..59 or 255")

# ADE20K, scene parsing challenge: 0 is other objects, 1..150 the classes.
ADE20K = mapping(_in_order(range(1, 151)), [0, 255], "0..150")

# COCO-Stuff pixel maps hold the id of labels.txt minus one, 255 for unlabeled. 11 of the 91 things
# of COCO were never segmented: street sign, hat, shoe, eye glasses, plate, mirror, window, desk,
# door, blender, hair brush.
COCO_ABSENT = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83, 91})
COCO_IDS = tuple(i for i in range(1, 183) if i not in COCO_ABSENT)  # 171
COCO_THINGS = tuple(i for i in COCO_IDS if i <= 91)  # 80
_COCO_KNOWN = "0..181 or 255 (a COCO-Stuff pixel map)"
COCO_STUFF = mapping(
    _in_order(i - 1 for i in COCO_IDS), [i - 1 for i in COCO_ABSENT] + [255], _COCO_KNOWN
)
_TRAIN_IDS = "0..170 or 255 (labelTrainIds)"
COCO_STUFF_TRAIN_IDS = mapping(_in_order(range(171)), [255], _TRAIN_IDS)
# COCO-Object: the 80 things, and background for all else, unlabeled pixels included.
_EVERYTHING = dict.fromkeys([*range(182), 255], 0)
COCO_OBJECT = mapping(_EVERYTHING | _in_order((i - 1 for i in COCO_THINGS), 1), [], _COCO_KNOWN)
COCO_OBJECT_TRAIN_IDS = mapping(
    dict.fromkeys([*range(171), 255], 0) | _in_order(range(80), 1), [], _TRAIN_IDS
)

# Cityscapes: the label ids that have a train id, in the order of the train ids.
CITYSCAPES_IDS = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
CITYSCAPES = mapping(
    _in_order(CITYSCAPES_IDS),
    [i for i in (*range(34), 255) if i not in CITYSCAPES_IDS],
    "0..33 (labelIds)",
)
CITYSCAPES_TRAIN_IDS = mapping(_in_order(range(19)), [255], "0..18 or 255 (labelTrainIds)")
