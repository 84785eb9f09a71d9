"""Boundary F-score: how well the outlines of a prediction lie on those of the truth.

A pixel is on the boundary of its class where one of its 4 neighbours has another; the border of the
image and void make no boundary. A boundary pixel of a class is hit if the other mask has one of the
same class at most `TOLERANCE` pixels away (Euclidean). With sums over the whole data set,

    precision = hits among predicted / predicted     recall = hits among true / true
    F = 2 precision recall / (precision + recall)

for each class, and the mean over the classes that have a boundary in either mask: like mIoU.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from naclip.evaluate.metric import VOID, Counts, Truth, mean

TOLERANCE = 2


def boundary_counts(
    truth: Truth, prediction: NDArray[np.integer], classes: int, tolerance: int = TOLERANCE
) -> Counts:
    """(classes, 4): boundary pixels of the prediction, hits among them; of the truth, hits."""
    predicted = np.where(truth == VOID, VOID, prediction)
    edges = (_edges(predicted), _edges(truth))
    counts = np.zeros((classes, 4), np.int64)
    for label in np.union1d(predicted[edges[0]], truth[edges[1]]):
        guessed, real = edges[0] & (predicted == label), edges[1] & (truth == label)
        for side, (mine, others) in enumerate(((guessed, real), (real, guessed))):
            hits = mine & _near(others, tolerance)
            counts[label, 2 * side : 2 * side + 2] = mine.sum(), hits.sum()
    return counts


def boundary_f(counts: Counts) -> tuple[NDArray[np.float64], float]:
    """F of each class, NaN where it has no boundary, and their mean."""
    predicted, predicted_hits, true, true_hits = counts.astype(np.float64).T
    # Hits of one side without any of the other cannot be: 0 / 0 is a class without boundary.
    precision = predicted_hits / np.maximum(predicted, 1)
    recall = true_hits / np.maximum(true, 1)
    f = 2 * precision * recall / np.maximum(precision + recall, np.finfo(float).tiny)
    f[predicted + true == 0] = np.nan
    return f, mean(f)


def _edges(labels: NDArray[np.integer]) -> NDArray[np.bool_]:
    found = np.zeros(labels.shape, bool)
    for axis in (0, 1):
        one, other = np.moveaxis(labels, axis, 0)[:-1], np.moveaxis(labels, axis, 0)[1:]
        differ = (one != other) & (one != VOID) & (other != VOID)
        turned = np.moveaxis(found, axis, 0)
        turned[:-1] |= differ
        turned[1:] |= differ
    return found


def _near(outline: NDArray[np.bool_], tolerance: int) -> NDArray[np.bool_]:
    """Pixels at most so far away from one of an outline."""
    steps = np.arange(-tolerance, tolerance + 1)
    disk = (steps[:, None] ** 2 + steps**2 <= tolerance**2).astype(np.uint8)
    return np.asarray(cv2.dilate(outline.astype(np.uint8), disk)).astype(bool)
