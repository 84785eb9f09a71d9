"""Patch features x text features: how much each patch looks like each name."""

from __future__ import annotations

import torch
from torch import Tensor

from naclip.errors import CheckpointError


def cosine(patches: Tensor, text: Tensor, grid: tuple[int, int]) -> Tensor:
    """(B, h*w, E) and (names, E), both normalised -> (B, names, h, w)."""
    return (text @ patches.transpose(1, 2)).unflatten(2, grid)


def surgery(patches: Tensor, text: Tensor, grid: tuple[int, int], image: Tensor) -> Tensor:
    """CLIP Surgery's scoring: features that all names share are taken away first.

    `image` is the class token's embedding (B, E): names that fit the image weigh more.
    """
    fit = (2 * image @ text.T).softmax(dim=-1)  # (B, names)
    weight = fit / fit.mean(dim=-1, keepdim=True)
    # sum over channels of (x t w - mean over names of x t w): two products instead of a
    # (patches, names, channels) tensor.
    weighted = weight[..., None] * text  # (B, names, E)
    redundant = weighted.mean(dim=1, keepdim=True)
    return ((weighted - redundant) @ patches.transpose(1, 2)).unflatten(2, grid)


def require_numbers(scores: Tensor, model: str, precision: str) -> None:
    """Damaged weights, or floats that overflow, would otherwise label every pixel alike."""
    if not bool(torch.isfinite(scores).all()):
        help = "get them again" if precision == "fp32" else "use precision fp32, or get them again"
        raise CheckpointError(
            f"{model}: the model's answers are no numbers (NaN) in {precision}: its weights are "
            f"damaged or do not fit: {help}"
        )
