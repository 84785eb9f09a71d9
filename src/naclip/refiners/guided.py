"""The guided filter (He, Sun, Tang 2010): in every square, scores are a linear map of the colour.

In the square around a pixel, the line a . colour + b that fits the scores best, with a penalty on
steep ones; a pixel then gets the mean of the lines of all squares that it lies in. Edges of the
image become edges of the scores; where the image is flat, scores become their local mean.

Colours lie last here, (h, w, 3), as OpenCV wants them: its box filter costs the same at any radius.
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
    colours = np.ascontiguousarray(guide.permute(1, 2, 0).cpu().numpy())
    mean = box(colours, radius)
    inverse = np.linalg.inv(_covariances(colours, mean, radius))
    made = np.empty(maps.shape, np.float32)
    for scores, out in zip(maps.cpu().numpy(), made, strict=True):
        out[:] = _filtered(scores, colours, mean, inverse, radius)
    return torch.from_numpy(made).to(maps.device)


def _filtered(
    scores: Floats, colours: Floats, mean: Floats, inverse: Floats, radius: int
) -> Floats:
    shift = scores.mean()  # what is left is small: differences keep their digits
    scores = scores - shift
    means = box(np.dstack([scores[..., None] * colours, scores]), radius)
    products = means[..., :3] - means[..., 3:] * mean
    slope = np.einsum("yxc,yxcd->yxd", products, inverse)
    offset = means[..., 3] - np.einsum("yxc,yxc->yx", slope, mean)
    lines = box(np.dstack([slope, offset]), radius)
    return np.asarray(np.einsum("yxc,yxc->yx", lines[..., :3], colours) + lines[..., 3] + shift)


def box(planes: Floats, radius: int) -> Floats:
    """(h, w, up to 4): the mean over the square around each pixel, as far as it is in the image."""
    side = (2 * radius + 1, 2 * radius + 1)

    def sums(array: Floats) -> Floats:
        found = cv2.boxFilter(array, -1, side, normalize=False, borderType=cv2.BORDER_CONSTANT)
        return np.asarray(found).reshape(array.shape)

    return sums(planes) / sums(np.ones((*planes.shape[:2], 1), np.float32))


def _covariances(colours: Floats, mean: Floats, radius: int) -> Floats:
    """(h, w, 3, 3) of the colours of a square, with the penalty on the diagonal."""
    columns = [box(colours * colours[..., i, None], radius) for i in range(3)]
    products = np.stack(columns, axis=-1) - mean[..., None] * mean[..., None, :]
    return np.asarray(products + PENALTY * np.eye(3), np.float32)
