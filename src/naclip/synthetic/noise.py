"""Seeded noise and soft edges for the painters; everything works at one point, in units.

A unit is a pixel of the training resolution, so a texture looks the same at any drawing scale.
"""

import math

from numba import njit


@njit(cache=True, nogil=True, inline="never")
def hashed(ix: int, iy: int, seed: int) -> float:
    """A number in [0, 1) for an integer lattice point."""
    h = (ix * 374761393 + iy * 668265263 + seed * 974634777) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 2246822519) & 0xFFFFFFFF
    return float((h ^ (h >> 15)) & 0xFFFFFF) / 16777216.0


@njit(cache=True, nogil=True, inline="never")
def smooth(x: float, y: float, seed: int) -> float:
    """Value noise in [0, 1] with features of one unit."""
    fx, fy = math.floor(x), math.floor(y)
    ix, iy = int(fx), int(fy)
    tx, ty = x - fx, y - fy
    tx = tx * tx * (3.0 - 2.0 * tx)
    ty = ty * ty * (3.0 - 2.0 * ty)
    top = hashed(ix, iy, seed) * (1.0 - tx) + hashed(ix + 1, iy, seed) * tx
    low = hashed(ix, iy + 1, seed) * (1.0 - tx) + hashed(ix + 1, iy + 1, seed) * tx
    return top * (1.0 - ty) + low * ty


@njit(cache=True, nogil=True, inline="never")
def cloudy(x: float, y: float, seed: int) -> float:
    """Three octaves of value noise, in [0, 1]."""
    return (
        0.57 * smooth(x, y, seed)
        + 0.29 * smooth(2.03 * x + 17.1, 2.03 * y, seed + 1)
        + 0.14 * smooth(4.1 * x, 4.1 * y + 31.7, seed + 2)
    )


@njit(cache=True, nogil=True)
def step(low: float, high: float, x: float) -> float:
    """0 below low, 1 above high, smooth between (GLSL's smoothstep)."""
    t = (x - low) / (high - low)
    t = min(1.0, max(0.0, t))
    return t * t * (3.0 - 2.0 * t)


@njit(cache=True, nogil=True)
def triangle(x: float) -> float:
    """Distance to the nearest integer, 0 to 0.5."""
    return abs(x - math.floor(x + 0.5))


@njit(cache=True, nogil=True, inline="never")
def cells(x: float, y: float, seed: int, jitter: float) -> tuple[float, float, float]:
    """Worley noise: distances to the nearest and second nearest point, and the nearest's tint."""
    fx, fy = math.floor(x), math.floor(y)
    ix, iy = int(fx), int(fy)
    first, second, tint = 9.0, 9.0, 0.0
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            px = ix + dx + 0.5 + jitter * (hashed(ix + dx, iy + dy, seed) - 0.5)
            py = iy + dy + 0.5 + jitter * (hashed(ix + dx, iy + dy, seed + 7) - 0.5)
            distance = math.sqrt((x - px) ** 2 + (y - py) ** 2)
            if distance < first:
                second, first = first, distance
                tint = hashed(ix + dx, iy + dy, seed + 13)
            elif distance < second:
                second = distance
    return first, second, tint
