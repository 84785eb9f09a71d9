"""The guided filter (He, Sun, Tang 2010): in every square, scores are a linear map of the colour.

In the square around a pixel, the line a . colour + b that fits the scores best, with a penalty on
steep ones; a pixel then gets the mean of the lines of all squares that it lies in. Edges of the
image become edges of the scores; where the image is flat, scores become their local mean.
"""

from __future__ import annotations

import torch
from torch import Tensor

from naclip.settings import Refinement

PENALTY = 0.01  # on the square of a; colours are normalised: their deviation is about 1
FLOATS_AT_ONCE = 1 << 25
COPIES = 12  # of a name's map, while it is filtered


def refine(maps: Tensor, guide: Tensor, refinement: Refinement) -> Tensor:
    """(names, h, w) -> the same, filtered in place; squares reach to the largest distance."""
    radius = max(refinement.refine_dilations)
    mean = box(guide, radius)
    inverse = _inverse(_covariances(guide, mean, radius))
    at_once = max(1, FLOATS_AT_ONCE // (COPIES * guide[0].numel()))
    for block in maps.split(at_once):
        block.copy_(_filtered(block, guide, mean, inverse, radius))
    return maps


def _filtered(maps: Tensor, guide: Tensor, mean: Tensor, inverse: Tensor, radius: int) -> Tensor:
    shift = maps.mean(dim=(1, 2), keepdim=True)  # what is left is small: sums keep their digits
    maps = maps - shift
    mean_maps = box(maps, radius)
    products = box(maps[:, None] * guide, radius) - mean_maps[:, None] * mean  # (names, 3, h, w)
    slope = torch.einsum("nchw,cdhw->ndhw", products, inverse)
    offset = mean_maps - (slope * mean).sum(dim=1)
    return (box(slope, radius) * guide).sum(dim=1) + box(offset, radius) + shift


def box(maps: Tensor, radius: int) -> Tensor:
    """The mean over the square around each pixel, as far as it lies in the image."""
    return _mean_along(_mean_along(maps, radius, -2), radius, -1)


def _mean_along(maps: Tensor, radius: int, axis: int) -> Tensor:
    maps = maps.transpose(axis, -1)
    length = maps.shape[-1]
    at = torch.arange(length, device=maps.device)
    first, last = (at - radius).clamp(min=0), (at + radius + 1).clamp(max=length)
    sums = torch.nn.functional.pad(maps.cumsum(dim=-1), (1, 0))
    means = (sums[..., last] - sums[..., first]) / (last - first)
    return means.transpose(axis, -1)


def _covariances(guide: Tensor, mean: Tensor, radius: int) -> Tensor:
    """(3, 3, h, w) of the colours of a square, with the penalty on the diagonal."""
    products = box((guide[:, None] * guide), radius) - mean[:, None] * mean
    return products + PENALTY * torch.eye(3, device=guide.device)[:, :, None, None]


def _inverse(m: Tensor) -> Tensor:
    """Of symmetric (3, 3, h, w) matrices, by their cofactors: on any device, all pixels at once."""
    rows = [torch.linalg.cross(m[(i + 1) % 3], m[(i + 2) % 3], dim=0) for i in range(3)]
    cofactors = torch.stack(rows)
    return cofactors / (m[0] * cofactors[0]).sum(dim=0)
