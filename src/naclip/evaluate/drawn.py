"""The synthetic world as a data set: scenes drawn when they are read, nothing to download.

The scenes are those that docs/tiny-model.md reports: combinations of thing, colour and background
that the tiny model was not trained on, from seeds that its development did not look at.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from naclip.evaluate.datasets import DataSet
from naclip.evaluate.metric import Truth
from naclip.images import Picture
from naclip.settings import Settings
from naclip.synthetic import CLASSES, Scene, draw
from naclip.vocabulary import Vocabulary

FIRST_SEED = 7_000_000
SCENES = 300
SIZE = (96, 128)  # units of the world: pixels of the tiny model
SCALE = 2


@dataclass(frozen=True)
class DrawnSample:
    seed: int

    @property
    def name(self) -> str:
        return f"scene-{self.seed}"

    def picture(self) -> Picture:
        return Picture(_scene(self.seed).image, self.name)

    def truth(self) -> Truth:
        return _scene(self.seed).labels.astype(np.uint16)


@functools.lru_cache(maxsize=8)
def _scene(seed: int) -> Scene:
    return draw(seed, SIZE, scale=SCALE, split="held-out")


def open_drawn(settings: Settings) -> DataSet:
    words = Vocabulary(
        tuple(kind.name for kind in CLASSES),
        tuple(kind.all_names for kind in CLASSES),
        title="drawn scenes",
    )
    samples = [DrawnSample(FIRST_SEED + index) for index in range(SCENES)]
    return DataSet("synthetic", words, settings, samples, "drawn", "synthetic", official=SCENES)
