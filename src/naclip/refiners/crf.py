"""A conditional random field: names spread between pixels of like colour until they agree.

Mean field of a field with Potts interactions (Krähenbühl, Koltun 2011). A pixel interacts with 8
neighbours at each distance (as in PAMR) and not with all pixels, so that a step costs a few passes
over the maps and no approximation is needed:

    Q_i(name) ~ exp(logit_i(name) + STRENGTH * sum_j k_ij Q_j(name))

    k_ij = exp(-|colour_i - colour_j|^2 / (2 COLOUR^2)), then divided by its sum over j
"""

from __future__ import annotations

import torch
from torch import Tensor

from naclip.refine import DIRECTIONS, shifted, step
from naclip.settings import Refinement

COLOUR = 0.3  # of colours whose deviation is about 1
STRENGTH = 15.0  # logits that neighbours which all agree add
FLOATS_AT_ONCE = 1 << 25


def refine(maps: Tensor, guide: Tensor, refinement: Refinement) -> Tensor:
    """(names, h, w) logits -> logits of the field after its steps of mean field."""
    weights = interactions(guide, refinement.refine_dilations)
    if maps.device.type == "cpu":
        from naclip.kernels import field  # Numba takes a moment to import

        return field.refine(maps, weights, refinement, STRENGTH)
    return refine_in_torch(maps, weights, refinement)


def refine_in_torch(maps: Tensor, weights: Tensor, refinement: Refinement) -> Tensor:
    """The same in plain torch, on any device: the reference of the kernel."""
    pixels = weights[0].numel()
    names = max(1, FLOATS_AT_ONCE // pixels)
    rows = max(1, FLOATS_AT_ONCE // maps[:, 0].numel())
    field = maps.clone()
    for _ in range(refinement.refine_steps):
        for part in field.split(rows, dim=1):
            part.copy_(part.softmax(dim=0))
        for part, own in zip(field.split(names), maps.split(names), strict=True):
            part.copy_(step(part, weights, refinement.refine_dilations).mul_(STRENGTH).add_(own))
    return field


def interactions(guide: Tensor, distances: tuple[int, ...]) -> Tensor:
    """(8 * distances, h, w): what each neighbour counts, 0 outside the image; the sum is 1."""
    weights = torch.stack(
        [
            torch.exp(-((neighbour - guide) ** 2).sum(dim=0) / (2 * COLOUR**2))
            for distance in distances
            for neighbour in shifted(guide, distance)
        ]
    )
    for (dy, dx), weight in zip(_offsets(distances), weights, strict=True):
        _clear_outside(weight, dy, dx)
    return weights / weights.sum(dim=0).clamp(min=torch.finfo(weights.dtype).tiny)


def _offsets(distances: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(dy * distance, dx * distance) for distance in distances for dy, dx in DIRECTIONS]


def _clear_outside(weight: Tensor, dy: int, dx: int) -> None:
    """0 where the neighbour lies outside: `shifted` repeats the border there."""
    height, width = weight.shape
    weight[max(0, height - dy) if dy > 0 else height :] = 0
    weight[: max(0, -dy)] = 0
    weight[:, max(0, width - dx) if dx > 0 else width :] = 0
    weight[:, : max(0, -dx)] = 0
