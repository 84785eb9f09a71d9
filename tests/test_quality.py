"""Segmentation quality with the model that comes with the package, on scenes it never saw.

Recorded tensors of random weights show that stages agree with the paper's program; only a trained
model shows that they still *segment*. The truth is drawn with the scenes, and the labels that the
shipped weights gave when they were shipped are kept: `python tests/test_quality.py` records them
anew, with their mIoU, when the weights change. Each mutation below is a mistake one could make, and
the measure must notice every one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import naclip
from naclip import windows
from naclip.clip import names
from naclip.methods import attention
from naclip.synthetic import CLASSES, Scene, draw
from naclip.vocabulary import Vocabulary

RECORD = Path(__file__).parent / "data" / "quality.npz"
SCENES = range(50_000, 50_040)
WORDS = Vocabulary(tuple(c.name for c in CLASSES), tuple(c.names for c in CLASSES))
MAY_DROP = 0.03  # of mIoU
MAY_DIFFER = 0.0005  # of pixels: rounding differs between machines


@cache
def scenes() -> list[Scene]:
    return [draw(seed, (96, 128), scale=2, split="held-out") for seed in SCENES]


def predicted(segment: naclip.Segmenter, **options: Any) -> NDArray[np.uint8]:
    return np.stack([segment(s.image, WORDS, **options).labels for s in scenes()])


def miou(labels: NDArray[np.uint8]) -> float:
    """By sums over the scenes, written out here."""
    truth = np.stack([scene.labels for scene in scenes()])
    found = []
    for label in range(len(CLASSES)):
        union = ((labels == label) | (truth == label)).sum()
        if union:
            found.append(((labels == label) & (truth == label)).sum() / union)
    return float(np.mean(found))


def complaint(labels: NDArray[np.uint8]) -> str:
    """What has become worse or other than it was; empty if nothing."""
    recorded = np.load(RECORD)
    before, now = float(recorded["miou"]), miou(labels)
    if now < before - MAY_DROP:
        return f"mIoU {now:.3f}, it was {before:.3f}"
    differ = float((labels != recorded["labels"]).mean())
    return f"{differ:.3%} of the pixels have another label" if differ > MAY_DIFFER else ""


@pytest.fixture(scope="module")
def segment() -> naclip.Segmenter:
    return naclip.load("tiny")


def test_miou_on_drawn_truth_has_not_dropped(segment: naclip.Segmenter) -> None:
    assert complaint(predicted(segment)) == ""


def wrong_sigma(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"sigma": 5.0}


def gaussian_without_class_row(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """As if the class token had a place on the grid: every peak is one token off."""
    right = attention.gaussian

    def wrong(*arguments: Any) -> Tensor:
        return right(*arguments).roll((-1, 0), dims=(0, 1))

    monkeypatch.setattr(attention, "gaussian", wrong)
    return {}


def unnormalised_text(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    right = names.text_features

    def wrong(*arguments: Any) -> Tensor:
        vectors = right(*arguments)
        return vectors * torch.linspace(0.8, 1.2, len(vectors))[:, None]

    monkeypatch.setattr("naclip.pipeline.text_features", wrong)
    return {}


def swapped_axes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    right = windows.stitch

    def wrong(scores: Tensor, plan: windows.Plan) -> windows.Stitched:
        return right(scores.transpose(-2, -1), plan)

    monkeypatch.setattr("naclip.pipeline.windows.stitch", wrong)
    return {}


@pytest.mark.parametrize(
    "mutate", [wrong_sigma, gaussian_without_class_row, unnormalised_text, swapped_axes]
)
def test_the_measure_notices(
    segment: naclip.Segmenter,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], dict[str, Any]],
) -> None:
    assert complaint(predicted(segment, **mutate(monkeypatch))) != ""


if __name__ == "__main__":
    labels = predicted(naclip.load("tiny"))
    np.savez_compressed(RECORD, labels=labels, miou=miou(labels))
    print(f"recorded: mIoU {miou(labels):.4f}")
