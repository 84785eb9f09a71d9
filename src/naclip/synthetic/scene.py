"""One scene: its description, its pixels, its labels, its captions."""

from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from naclip.synthetic import captions
from naclip.synthetic.classes import BACKGROUNDS, CLASSES, SceneClass
from naclip.synthetic.layout import Layout, Split, plan, region_rows, thing_rows
from naclip.synthetic.render import paint

# A class with less than this share of the picture is not "there": no caption names it.
VISIBLE_SHARE = 0.012

# Points within a pixel whose colours are averaged: a centre, a diagonal, a rotated grid.
_POINTS: dict[int, npt.NDArray[np.float64]] = {
    1: np.array([[0.5, 0.5]]),
    2: np.array([[0.25, 0.25], [0.75, 0.75]]),
    4: np.array([[0.375, 0.125], [0.875, 0.375], [0.125, 0.625], [0.625, 0.875]]),
}


@dataclass(frozen=True)
class Scene:
    """A drawn scene. `labels` holds class indices (see CLASSES), every pixel has one."""

    seed: int
    split: Split
    layout: Layout
    image: npt.NDArray[np.uint8]  # (H, W, 3) RGB
    labels: npt.NDArray[np.uint8]  # (H, W)
    present: tuple[SceneClass, ...]

    @property
    def caption(self) -> str:
        """One sentence about the whole scene; see `sentence` for other wordings."""
        return self.sentence(0)

    def sentence(self, wording: int) -> str:
        rng = Random(f"{self.seed} {wording}")
        return captions.full_caption(self.layout, self.present, rng)


def draw(
    seed: int,
    size: tuple[int, int] = (64, 64),
    *,
    scale: float = 1,
    split: Split = "train",
    samples: Literal[1, 2, 4] = 4,
) -> Scene:
    """Draw the scene of a seed.

    seed: any integer; the same arguments always give the same bytes.
    size: (height, width) in units, at least 32 each; how much of the world is in view.
    scale: drawn pixels per unit; the scene stays the same.
    split: "train" never shows a held-out combination of thing, colour and background;
        every thing of a "held-out" scene is one.
    samples: points averaged per pixel; 4 is for looking at, 1 is three times as fast.
    """
    if min(size) < 32:
        raise ValueError(f"size {size} is too small for a scene: use at least 32 units each way")
    if split not in get_args(Split):
        raise ValueError(f"no split {split!r}: use one of {', '.join(get_args(Split))}")
    layout = plan(seed, size, split)
    height, width = round(size[0] * scale), round(size[1] * scale)
    if min(height, width) < 1:
        raise ValueError(f"scale {scale} leaves no pixels: use at least {1 / min(size):.3f}")
    image = np.empty((height, width, 3), np.uint8)
    labels = np.empty((height, width), np.uint8)
    light = np.array(layout.light)
    regions, things = region_rows(layout), thing_rows(layout)
    paint(regions, things, light, scale, _POINTS[samples], image, labels, len(BACKGROUNDS))
    counts = np.bincount(labels.ravel(), minlength=len(CLASSES))
    least = max(1, VISIBLE_SHARE * labels.size)
    present = tuple(c for c in CLASSES if counts[c.index] >= least)
    return Scene(seed, split, layout, image, labels, present)
