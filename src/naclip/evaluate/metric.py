"""mIoU as the benchmarks define it: sums over the whole data set first, then a mean over classes.

A confusion matrix has the truth in its rows and the prediction in its columns; void pixels are in
neither. With intersections on its diagonal, everything else follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Truth = NDArray[np.uint16]
VOID = 65535  # a pixel of the truth that counts for nothing

RESAMPLES = 1000
SEED = 0


def confusion(truth: NDArray[Any], prediction: NDArray[Any], classes: int) -> Counts:
    """(classes, classes) pixels of one image; where the truth is VOID, nothing is counted."""
    judged = truth != VOID
    pairs = truth[judged].astype(np.int64) * classes + prediction[judged]
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


@dataclass(frozen=True)
class Scores:
    """Of a confusion matrix. NaN: the class does not occur, and no mean counts it."""

    iou: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    miou: float
    macc: float
    aacc: float


def scores(matrix: Counts) -> Scores:
    hits = np.diag(matrix)
    truths, guesses = matrix.sum(axis=1), matrix.sum(axis=0)
    iou = _ratio(hits, truths + guesses - hits)
    accuracy = _ratio(hits, truths)
    aacc = float(hits.sum() / truths.sum()) if truths.sum() else float("nan")
    return Scores(iou, accuracy, mean(iou), mean(accuracy), aacc)


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)


def mean(values: NDArray[np.float64]) -> float:
    """Over the classes that occur; NaN if none does."""
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


@dataclass(frozen=True)
class PerImage:
    """What the bootstrap needs of every image: # (images, classes) each"""

    hits: NDArray[np.float64]
    unions: NDArray[np.float64]

    @staticmethod
    def of(matrices: Sequence[Counts]) -> PerImage:
        hits = np.stack([np.diag(matrix) for matrix in matrices])
        both = np.stack([matrix.sum(axis=0) + matrix.sum(axis=1) for matrix in matrices])
        return PerImage(hits.astype(float), (both - hits).astype(float))

    def resampled(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """mIoU of each draw of images: weights (draws, images) -> (draws,)."""
        # Counts stay far below 2^53: sums of floats are exact, whatever their order.
        unions = weights @ self.unions
        iou = _ratio(weights @ self.hits, unions)
        present = (unions > 0).sum(axis=1)
        total = np.nansum(iou, axis=1)
        return np.divide(total, present, out=np.full(len(total), np.nan), where=present > 0)


def draws(images: int, resamples: int = RESAMPLES, seed: int = SEED) -> NDArray[np.float64]:
    """How often each image is drawn, with replacement: (resamples, images)."""
    random = np.random.default_rng(seed)
    share = np.full(images, 1 / images)
    return random.multinomial(images, share, size=resamples).astype(float)


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The middle 95 percent."""
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


def bootstrap(matrices: Sequence[Counts]) -> tuple[float, float]:
    """A 95% interval of mIoU over data sets made of the same images, drawn with replacement."""
    return interval(PerImage.of(matrices).resampled(draws(len(matrices))))
