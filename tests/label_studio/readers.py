"""Label Studio's regions -> masks: by its own SDK, and by what a filled polygon is."""

from __future__ import annotations

from typing import Any

import numpy as np
from label_studio_sdk.converter.brush import decode_rle


def label_and_mask(row: dict[str, Any]) -> tuple[str, np.ndarray]:
    value, size = row["value"], (row["original_height"], row["original_width"])
    (label,) = value[row["type"]]
    if row["type"] == "brushlabels":
        pixels = decode_rle(value["rle"]).reshape(*size, 4)
        assert set(np.unique(pixels)) <= {0, 255}
        return label, pixels[..., 3] == 255
    return label, even_odd(value["points"], size)


def even_odd(points: list[list[float]], size: tuple[int, int]) -> np.ndarray:
    """Pixels whose centre has an odd number of the outline's edges on its left."""
    height, width = size
    x, y = np.array(points).T / 100 * np.array([[width], [height]])
    rows, columns = np.arange(height)[:, None] + 0.5, np.arange(width) + 0.5
    inside = np.zeros(size, np.bool_)
    for ax, ay, bx, by in zip(x, y, np.roll(x, -1), np.roll(y, -1), strict=True):
        crosses = (ay > rows) != (by > rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = ax + (rows - ay) / (by - ay) * (bx - ax)
        inside ^= crosses & (at < columns)
    return inside
