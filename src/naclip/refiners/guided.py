"""The guided filter (He, Sun, Tang 2010): in every square, scores are a linear map of the colour.

In the square around a pixel, the line a . colour + b that fits the scores best, with a penalty on
steep ones; a pixel then gets the mean of the lines of all squares that it lies in. Edges of the
image become edges of the scores; where the image is flat, scores become their local mean.

Sums over squares are OpenCV's: they cost the same at any radius.
"""

from __future__ import annotations

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naclip.settings import Refinement

Floats = NDArray[np.float32]
PENALTY = 0.001  # on the square of a; colours are normalised: their deviation is about 1


def refine(maps: Tensor, guide: Tensor, refinement: Refinement) -> Tensor:
    """(names, h, w) -> the same, filtered; squares reach to the largest distance."""
    radius = max(refinement.refine_dilations)
    colours = guide.cpu().numpy()
    mean = box(colours, radius)
    inverse = _inverse_covariances(colours, mean, radius)
    made = np.empty(maps.shape, np.float32)
    for scores, out in zip(maps.cpu().numpy(), made, strict=True):
        out[:] = _filtered(scores, colours, mean, inverse, radius)
    return torch.from_numpy(made).to(maps.device)


def _filtered(
    scores: Floats, colours: Floats, mean: Floats, inverse: Floats, radius: int
) -> Floats:
    shift = scores.mean()  # what is left is small: differences keep their digits
    scores = scores - shift
    *products, mean_score = box(np.stack([*(scores * colours), scores]), radius)
    covariances = products - mean_score * mean  # (3, h, w) of colours and scores
    slope = (inverse * covariances).sum(axis=1)
    offset = mean_score - (slope * mean).sum(axis=0)
    lines = box(np.stack([*slope, offset]), radius)
    return np.asarray((lines[:3] * colours).sum(axis=0) + lines[3] + shift)


def box(planes: Floats, radius: int) -> Floats:
    """(n, h, w): the mean over the square around each pixel, as far as it lies in the image."""
    side = (2 * radius + 1, 2 * radius + 1)

    def sums(plane: Floats) -> Floats:
        found = cv2.boxFilter(plane, -1, side, normalize=False, borderType=cv2.BORDER_CONSTANT)
        return np.asarray(found)

    return np.stack([sums(plane) for plane in planes]) / sums(np.ones_like(planes[0]))


def _inverse_covariances(colours: Floats, mean: Floats, radius: int) -> Floats:
    """(3, 3, h, w) of the colours of a square, with the penalty on the diagonal."""
    products = np.stack([box(colours * colour, radius) for colour in colours])
    covariances = products - mean[:, None] * mean + PENALTY * np.eye(3)[..., None, None]
    inverse = np.linalg.inv(np.moveaxis(covariances, (0, 1), (2, 3)))
    return np.ascontiguousarray(np.moveaxis(inverse, (2, 3), (0, 1)), np.float32)
