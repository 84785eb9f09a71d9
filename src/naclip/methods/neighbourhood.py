"""The Gaussian over the patch grid that makes attention neighbour-aware."""

from __future__ import annotations

import functools

import torch
from torch import Tensor


@functools.lru_cache(maxsize=16)
def gaussian(grid: tuple[int, int], sigma: float, device: torch.device) -> Tensor:
    """omega of Eq. (gaussian_window), closed form: (1 + h*w, 1 + h*w), fp32.

    The class token has no place on the grid: its row and column are 0, so it is still attended to.
    """
    h, w = grid
    # Distances over sigma, then squared, in float64: no sigma is too small or too large for that.
    rows = torch.arange(h, dtype=torch.float64).repeat_interleave(w)
    columns = torch.arange(w, dtype=torch.float64).repeat(h)
    dy, dx = (rows[:, None] - rows) / sigma, (columns[:, None] - columns) / sigma
    squared = dy.square_().add_(dx.square_())
    omega = torch.zeros(1 + h * w, 1 + h * w)
    omega[1:, 1:] = torch.exp(-squared / 2)  # Eq. (gaussian_func)
    return omega.to(device)
