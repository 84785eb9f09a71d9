"""Cutting an image into windows and stitching their score grids back: an inverse pair.

Everything from the patch grid of a window to the pixels of the original image is linear and
separable: bilinear from the grid to the window, the mean over overlapping windows, bilinear to
the original size. With the windows on a lattice of rows and columns, the grids of all windows are
one grid L of (rows x cells) by (columns x cells), and

    scores = A_y L A_x^T

for two small matrices that `Plan` builds. No score map of the resized image ever exists.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naclip.errors import SettingsError
from naclip.settings import Windowing

Matrix = NDArray[np.float64]


def starts(length: int, window: int, stride: int) -> tuple[int, ...]:
    """Where windows begin along an axis; the last is shifted inwards so that it ends at the border.

    A window longer than the axis shrinks to it.
    """
    if length <= window:
        return (0,)
    count = -(-(length - window) // stride) + 1
    return tuple(min(index * stride, length - window) for index in range(count))


@functools.lru_cache(maxsize=8)  # an image needs 4; those of a large one are 100 MB
def bilinear(size_in: int, size_out: int) -> Matrix:
    """The matrix (out, in) of torch's bilinear interpolation with align_corners=False."""
    source = np.maximum((np.arange(size_out) + 0.5) * (size_in / size_out) - 0.5, 0.0)
    below = np.minimum(source.astype(np.int64), size_in - 1)
    above = np.minimum(below + 1, size_in - 1)
    weight = source - below
    matrix = np.zeros((size_out, size_in))
    rows = np.arange(size_out)
    np.add.at(matrix, (rows, below), 1 - weight)
    np.add.at(matrix, (rows, above), weight)
    return matrix


@dataclass(frozen=True)
class Axis:
    """One axis of a plan: windows along it, and the map from their cells to the output."""

    resized: int
    original: int
    window: int
    starts: tuple[int, ...]
    cells: int  # patches of one window along this axis

    @functools.lru_cache(maxsize=4)  # noqa: B019  two of an image; the axes are small, and few
    def matrix(self) -> Matrix:
        """(original, windows * cells): cells -> window's pixels -> mean of windows -> original."""
        spread = np.zeros((self.resized, len(self.starts), self.cells))
        covered = np.zeros(self.resized)
        for index, start in enumerate(self.starts):
            spread[start : start + self.window, index] += bilinear(self.cells, self.window)
            covered[start : start + self.window] += 1
        mean = (spread / covered[:, None, None]).reshape(self.resized, -1)
        return bilinear(self.resized, self.original) @ mean


@dataclass(frozen=True)
class Plan:
    """Where the windows lie and how their scores come together again."""

    y: Axis
    x: Axis

    @property
    def count(self) -> int:
        return len(self.y.starts) * len(self.x.starts)

    @property
    def window(self) -> tuple[int, int]:
        return self.y.window, self.x.window

    @property
    def grid(self) -> tuple[int, int]:
        """Patches (h, w) of a window."""
        return self.y.cells, self.x.cells


def plan(
    original: tuple[int, int], resized: tuple[int, int], windowing: Windowing, patch: int
) -> Plan:
    def axis(full: int, small: int) -> Axis:
        window = small if windowing.whole else min(windowing.window, small)
        if window < patch:
            raise SettingsError(
                f"window {window} is smaller than a patch of the model: use at least {patch}"
            )
        return Axis(small, full, window, starts(small, window, windowing.stride), window // patch)

    return Plan(axis(original[0], resized[0]), axis(original[1], resized[1]))


def cut(pixels: Tensor, plan: Plan) -> Tensor:
    """(3, h, w) -> (windows, 3, window, window), row by row."""
    height, width = plan.window
    return torch.stack(
        [
            pixels[:, top : top + height, left : left + width]
            for top in plan.y.starts
            for left in plan.x.starts
        ]
    )


@dataclass(frozen=True)
class Stitched:
    """Scores of all names at the original size, as the linear map that yields them on demand."""

    cells_NYX: Tensor  # (names, rows * cells, columns * cells)
    a_y: Tensor  # (H, rows * cells)
    a_x: Tensor  # (W, columns * cells)

    @property
    def size(self) -> tuple[int, int]:
        return self.a_y.shape[0], self.a_x.shape[0]

    @property
    def names(self) -> int:
        return self.cells_NYX.shape[0]

    def maps(self, first: int, last: int) -> Tensor:
        """Score maps (names, H, W) of the names first..last-1."""
        return self.a_y @ self.cells_NYX[first:last] @ self.a_x.T


def stitch(scores: Tensor, plan: Plan) -> Stitched:
    """(windows, names, cells, cells) -> score maps at the original size: `cut` undone."""
    rows, columns = len(plan.y.starts), len(plan.x.starts)
    lattice = scores.unflatten(0, (rows, columns))  # (rows, columns, names, cy, cx)
    cells = lattice.permute(2, 0, 3, 1, 4).flatten(3, 4).flatten(1, 2)
    a_y, a_x = (
        torch.from_numpy(axis.matrix()).to(scores.device, scores.dtype) for axis in (plan.y, plan.x)
    )
    return Stitched(cells.contiguous(), a_y, a_x)
