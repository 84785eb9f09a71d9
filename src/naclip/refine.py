"""Pixel-adaptive mask refinement (PAMR): scores flow between pixels that look alike.

The affinity of a pixel to 8 neighbours at each dilation depends on the image alone; a step
replaces each score by the affinity-weighted mean of its neighbours' scores. Maps of different
names do not meet, so they are refined in blocks and memory does not grow with names.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from naclip.settings import Refinement

DIRECTIONS = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


def guidance(pixels: Tensor, size: tuple[int, int]) -> Tensor:
    """The normalised, resized image (3, h, w), upsampled to the original size."""
    return F.interpolate(pixels[None], size=size, mode="bilinear", align_corners=False)[0]


def shifted(maps: Tensor, dilation: int) -> list[Tensor]:
    """The 8 neighbours of every pixel of (C, H, W) at a distance; borders are replicated."""
    height, width = maps.shape[-2:]
    padded = F.pad(maps[None], (dilation,) * 4, mode="replicate")[0]
    return [
        padded[
            :,
            dilation * (1 + dy) : dilation * (1 + dy) + height,
            dilation * (1 + dx) : dilation * (1 + dx) + width,
        ]
        for dy, dx in DIRECTIONS
    ]


def affinity(image: Tensor, dilations: tuple[int, ...]) -> Tensor:
    """(3, H, W) -> (8 * dilations, H, W), a softmax over the neighbours."""
    std = _deviation(image, dilations)
    sharpness = 1 / (1e-8 + 0.1 * std)
    differences = [
        -((neighbour - image).abs() * sharpness).mean(dim=0)
        for dilation in dilations
        for neighbour in shifted(image, dilation)
    ]
    return torch.stack(differences).softmax(dim=0)


def _deviation(image: Tensor, dilations: tuple[int, ...]) -> Tensor:
    """Unbiased, per channel, of the neighbours and the centre, which counts once a dilation."""
    samples = 9 * len(dilations)
    everyone = [x for dilation in dilations for x in (*shifted(image, dilation), image)]
    mean = sum(everyone) / samples
    squares = sum((x - mean) ** 2 for x in everyone)
    return (squares / (samples - 1)).sqrt()  # type: ignore[union-attr]


def refine(maps: Tensor, weights: Tensor, refinement: Refinement) -> Tensor:
    """(names, H, W) score maps -> the same, refined with `weights` from `affinity`."""
    for _ in range(refinement.refine_steps):
        maps = step(maps, weights, refinement.refine_dilations)
    return maps


def step(maps: Tensor, weights: Tensor, dilations: tuple[int, ...]) -> Tensor:
    """Each score replaced by the weighted sum of its neighbours'."""
    total = torch.zeros_like(maps)
    neighbours = (x for dilation in dilations for x in shifted(maps, dilation))
    for weight, neighbour in zip(weights, neighbours, strict=True):
        total.addcmul_(neighbour, weight)
    return total
