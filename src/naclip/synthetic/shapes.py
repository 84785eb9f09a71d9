"""Outlines of the things: signed distances (negative inside), one thing per function.

Coordinates are relative to the thing's radius: it fills about [-1, 1] x [-1, 1], y down. Bodies
are large, so that most of a thing is its texture: a patch sees texture, never an outline.
"""

import math

from numba import njit


@njit(cache=True, nogil=True)
def oval(x: float, y: float, cx: float, cy: float, a: float, b: float) -> float:
    return (math.sqrt(((x - cx) / a) ** 2 + ((y - cy) / b) ** 2) - 1.0) * min(a, b)


@njit(cache=True, nogil=True)
def box(x: float, y: float, cx: float, cy: float, a: float, b: float) -> float:
    """A rectangle with slightly rounded corners, half sides a and b."""
    dx, dy = abs(x - cx) - a + 0.08, abs(y - cy) - b + 0.08
    outside = math.sqrt(max(dx, 0.0) ** 2 + max(dy, 0.0) ** 2)
    return outside + min(max(dx, dy), 0.0) - 0.08


@njit(cache=True, nogil=True)
def limb(x: float, y: float, ax: float, ay: float, bx: float, by: float, r: float) -> float:
    """A capsule from a to b with radius r."""
    vx, vy = bx - ax, by - ay
    t = ((x - ax) * vx + (y - ay) * vy) / (vx * vx + vy * vy)
    t = min(1.0, max(0.0, t))
    return math.sqrt((x - ax - t * vx) ** 2 + (y - ay - t * vy) ** 2) - r


@njit(cache=True, nogil=True, inline="never")
def _zebra(x: float, y: float) -> float:
    d = oval(x, y, -0.12, 0.0, 0.74, 0.46)
    for leg in range(4):
        foot = -0.66 + 0.33 * leg
        d = min(d, limb(x, y, foot * 0.9, 0.2, foot, 0.9, 0.115))
    d = min(d, limb(x, y, 0.42, -0.1, 0.66, -0.62, 0.23))
    d = min(d, limb(x, y, 0.66, -0.68, 0.9, -0.5, 0.19))
    return min(d, limb(x, y, 0.6, -0.8, 0.56, -0.95, 0.06))


@njit(cache=True, nogil=True, inline="never")
def _ladybug(x: float, y: float) -> float:
    d = oval(x, y, 0.0, 0.12, 0.88, 0.84)
    d = min(d, oval(x, y, 0.0, -0.68, 0.42, 0.3))
    ax = abs(x)
    return min(d, limb(ax, y, 0.14, -0.85, 0.34, -0.98, 0.045))


@njit(cache=True, nogil=True, inline="never")
def _fish(x: float, y: float) -> float:
    d = oval(x, y, -0.14, 0.0, 0.8, 0.58)
    spread = 0.12 + 0.62 * (x - 0.5) / 0.48
    tail = max(0.5 - x, x - 0.98, abs(y) - spread)
    fin = max(oval(x, y, -0.05, -0.45, 0.36, 0.36), y + 0.1)
    return min(d, tail, fin)


@njit(cache=True, nogil=True, inline="never")
def _flower(x: float, y: float) -> float:
    turn = math.atan2(y, x)
    return math.sqrt(x * x + y * y) - 0.84 - 0.11 * math.cos(7.0 * turn)


@njit(cache=True, nogil=True, inline="never")
def _house(x: float, y: float) -> float:
    wall = box(x, y, 0.0, 0.27, 0.78, 0.68)
    roof = max(-0.98 - y, y + 0.36, abs(x) - 0.94 - 0.95 * (y + 0.36))
    return min(wall, roof)


@njit(cache=True, nogil=True, inline="never")
def _tree(x: float, y: float) -> float:
    d = oval(x, y, 0.0, -0.42, 0.62, 0.55)
    d = min(d, oval(x, y, -0.45, -0.02, 0.48, 0.42))
    d = min(d, oval(x, y, 0.45, -0.02, 0.48, 0.42))
    return min(d, limb(x, y, 0.0, 0.2, 0.0, 0.9, 0.13))


@njit(cache=True, nogil=True, inline="never")
def _sweater(x: float, y: float) -> float:
    ax = abs(x)
    d = box(ax, y, 0.0, 0.08, 0.55, 0.8)
    d = min(d, limb(ax, y, 0.48, -0.5, 0.82, 0.4, 0.19))
    return max(d, 0.24 - math.sqrt(x * x + (y + 0.82) ** 2))


@njit(cache=True, nogil=True, inline="never")
def _basket(x: float, y: float) -> float:
    lean = 0.74 + 0.16 * (0.5 - y)
    d = max(abs(y - 0.3) - 0.62, abs(x) - lean)
    handle = abs(math.sqrt(x * x + ((y + 0.3) / 0.9) ** 2) - 0.66) - 0.07
    return min(d, max(handle, y + 0.2))


@njit(cache=True, nogil=True, inline="never")
def _strawberry(x: float, y: float) -> float:
    half = 0.84 - 0.44 * max(0.0, y + 0.15) ** 1.5
    d = (math.sqrt((x / half) ** 2 + ((y - 0.02) / 0.94) ** 2) - 1.0) * 0.7
    leaf = oval(abs(x), y, 0.26, -0.86, 0.36, 0.15)
    return min(d, leaf)


@njit(cache=True, nogil=True, inline="never")
def _couch(x: float, y: float) -> float:
    ax = abs(x)
    d = box(ax, y, 0.0, -0.2, 0.82, 0.5)
    d = min(d, box(ax, y, 0.0, 0.3, 0.94, 0.3))
    d = min(d, box(ax, y, 0.86, 0.12, 0.13, 0.42))
    return min(d, box(ax, y, 0.72, 0.66, 0.07, 0.12))


@njit(cache=True, nogil=True, inline="never")
def _turtle(x: float, y: float) -> float:
    d = oval(x, y, -0.08, 0.0, 0.78, 0.66)
    ay = abs(y)
    d = min(d, oval(x, y, 0.82, 0.0, 0.22, 0.18))
    d = min(d, limb(x, ay, 0.3, 0.5, 0.5, 0.78, 0.14))
    return min(d, limb(x, ay, -0.45, 0.45, -0.66, 0.72, 0.13))


@njit(cache=True, nogil=True, inline="never")
def _umbrella(x: float, y: float) -> float:
    dome = math.sqrt(x * x + (y - 0.12) ** 2) - 0.97
    scallop = 0.12 + 0.1 * abs(math.cos(x * 1.62 * math.pi)) - 0.1
    d = max(dome, y - 0.12 - scallop)
    return min(d, limb(x, y, 0.0, 0.1, 0.0, 0.86, 0.05))


@njit(cache=True, nogil=True, inline="never")
def _butterfly(x: float, y: float) -> float:
    ax = abs(x)
    d = oval(ax, y, 0.5, -0.36, 0.47, 0.5)
    d = min(d, oval(ax, y, 0.42, 0.42, 0.42, 0.44))
    d = min(d, limb(x, y, 0.0, -0.5, 0.0, 0.62, 0.09))
    return min(d, limb(ax, y, 0.04, -0.6, 0.24, -0.92, 0.03))


@njit(cache=True, nogil=True)
def outline(kind: int, x: float, y: float) -> float:  # noqa: PLR0911, PLR0912
    """Signed distance to thing `kind` (0 is the first thing), in radii."""
    if kind == 0:
        return _zebra(x, y)
    if kind == 1:
        return _ladybug(x, y)
    if kind == 2:
        return _fish(x, y)
    if kind == 3:
        return _flower(x, y)
    if kind == 4:
        return _house(x, y)
    if kind == 5:
        return _tree(x, y)
    if kind == 6:
        return box(x, y, 0.0, 0.0, 0.86, 0.86)
    if kind == 7:
        return _sweater(x, y)
    if kind == 8:
        return _basket(x, y)
    if kind == 9:
        return _strawberry(x, y)
    if kind == 10:
        return _couch(x, y)
    if kind == 11:
        return _turtle(x, y)
    if kind == 12:
        return _umbrella(x, y)
    return _butterfly(x, y)
