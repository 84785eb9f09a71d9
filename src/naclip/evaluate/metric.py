"""mIoU as the benchmarks define it: sums over the whole data set first, then a mean over classes.

A confusion matrix has the truth in its rows and the prediction in its columns; void pixels are in
neither. With intersections on its diagonal, everything else follows from it. Of single images only
the entries that are not zero are kept: 5000 images of 171 classes dense would be 1.2 GB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Sparse = NDArray[np.int32]  # (entries, 3): truth, prediction, pixels
Truth = NDArray[np.uint16]
VOID = 65535  # a pixel of the truth that counts for nothing

RESAMPLES = 1000
SEED = 0


def confusion(truth: NDArray[Any], prediction: NDArray[Any], classes: int) -> Counts:
    """(classes, classes) pixels of one image; where the truth is VOID, nothing is counted."""
    judged = truth != VOID
    pairs = truth[judged].astype(np.int64) * classes + prediction[judged]
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def sparse(matrix: Counts) -> Sparse:
    truth, prediction = np.nonzero(matrix)
    return np.stack([truth, prediction, matrix[truth, prediction]], axis=1).astype(np.int32)


def total(images: Iterable[Sparse], classes: int) -> Counts:
    """The confusion matrix of many images."""
    matrix = np.zeros((classes, classes), np.int64)
    for entries in images:
        matrix[entries[:, 0], entries[:, 1]] += entries[:, 2]  # an image has each cell once
    return matrix


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
    def of(images: Sequence[Sparse], classes: int) -> PerImage:
        hits, unions = np.zeros((2, len(images), classes))
        for index, entries in enumerate(images):
            truth, prediction, pixels = entries.T
            hit = truth == prediction
            hits[index, truth[hit]] = pixels[hit]
            for side in (truth, prediction):
                unions[index] += np.bincount(side, pixels, minlength=classes)
        return PerImage(hits, unions - hits)

    def images_miou(self) -> NDArray[np.float64]:
        """mIoU of each image by itself."""
        return _mean_iou(self.hits, self.unions)

    def resampled(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """mIoU of each draw of images: weights (draws, images) -> (draws,)."""
        # Counts stay far below 2^53: sums of floats are exact, whatever their order.
        return _mean_iou(weights @ self.hits, weights @ self.unions)


def _mean_iou(hits: NDArray[np.float64], unions: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows, classes) each -> mIoU of each row."""
    present = (unions > 0).sum(axis=1)
    summed = np.nansum(_ratio(hits, unions), axis=1)
    return np.divide(summed, present, out=np.full(len(summed), np.nan), where=present > 0)


def draws(images: int, resamples: int = RESAMPLES, seed: int = SEED) -> NDArray[np.float64]:
    """How often each image is drawn, with replacement: (resamples, images)."""
    random = np.random.default_rng(seed)
    share = np.full(images, 1 / images)
    return random.multinomial(images, share, size=resamples).astype(float)


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The middle 95 percent of those that are numbers."""
    if np.isnan(values).all():
        return float("nan"), float("nan")
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


def bootstrap(images: Sequence[Sparse], classes: int) -> tuple[float, float]:
    """A 95% interval of mIoU over data sets made of the same images, drawn with replacement."""
    return interval(PerImage.of(images, classes).resampled(draws(len(images))))
