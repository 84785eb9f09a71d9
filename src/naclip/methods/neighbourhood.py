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
    rows = torch.arange(h, device=device).repeat_interleave(w)
    columns = torch.arange(w, device=device).repeat(h)
    squared = (rows[:, None] - rows) ** 2 + (columns[:, None] - columns) ** 2
    omega = torch.zeros(1 + h * w, 1 + h * w, device=device)
    omega[1:, 1:] = torch.exp(-squared / (2 * sigma**2))  # Eq. (gaussian_func)
    return omega
