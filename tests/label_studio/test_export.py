"""Exported tasks, as Label Studio's own SDK checks and reads them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from label_studio_sdk.converter.brush import decode_from_annotation
from label_studio_sdk.label_interface import LabelInterface

from naclip.export import formats
from naclip.export.item import VOID, Classes, Item
from naclip.export.options import Options

CONFIG = """
<View>
  <Image name="image" value="$image"/>
  <BrushLabels name="label" toName="image"><Label value="cat"/><Label value="sofa"/></BrushLabels>
</View>
"""
LABELS = np.array([[0, 1, 1, 0], [1, 0, 2, 2], [1, VOID, 2, 2]], np.uint16)
SCORES = np.arange(12, dtype=np.float32).reshape(3, 4) / 12
CLASSES = Classes(("background", "cat", "sofa"), has_background=True)


def masks_of(prediction: dict) -> dict[str, np.ndarray]:
    """By the SDK, which wants a region's value beside its type, as its exports have it."""
    return decode_from_annotation("label", [{**r, **r["value"]} for r in prediction["result"]])


def tasks(item: Item, options: Options) -> list[dict]:
    form = formats.find("label-studio")
    part = form.make(item, options).part
    assert part is not None
    assert form.gather is not None
    ((name, pieces),) = form.gather([part, part], item.classes, options)
    assert name == "tasks.json"
    return json.loads(b"".join(pieces))


def test_the_sdk_accepts_the_tasks_and_reads_the_masks_back() -> None:
    item = Item(LABELS, CLASSES, "a b/cat&1.jpg", scores=SCORES)
    task, again = tasks(item, Options())
    assert task == again
    assert task["data"] == {"image": "/data/local-files/?d=a%20b/cat%261.jpg"}
    interface = LabelInterface(CONFIG)
    assert interface.validate_task({"data": task["data"]}) is True
    (prediction,) = task["predictions"]
    assert interface.validate_prediction(prediction, return_errors=True) == []
    masks = masks_of(prediction)
    assert list(masks) == ["label-cat-0", "label-sofa-0"]
    for label, mask in enumerate(masks.values(), start=1):
        np.testing.assert_array_equal(mask == 255, label == LABELS)
    # By hand: cat 1, 2, 4, 8 and sofa 6, 7, 10, 11 twelfths.
    assert [row["score"] for row in prediction["result"]] == pytest.approx([15 / 48, 34 / 48])
    assert prediction["score"] == pytest.approx(49 / 96)


def test_parts_are_regions_of_their_own_by_hand() -> None:
    labels = np.array([[1, 0, 1, 0, 1], [1, 0, 0, 0, 1]], np.uint16)
    (task, _) = tasks(Item(labels, CLASSES, "x.jpg"), Options(instances=True, min_pixels=2))
    (prediction,) = task["predictions"]
    masks = masks_of(prediction)
    np.testing.assert_array_equal(np.argwhere(masks["label-cat-0"])[:, 1], [0, 0])
    np.testing.assert_array_equal(np.argwhere(masks["label-cat-1"])[:, 1], [4, 4])
    assert prediction["score"] is None
    assert len({row["id"] for row in prediction["result"]}) == 2
    assert all("score" not in row for row in prediction["result"])
