"""A mask -> polygons along the edges of its pixels: exact, with holes, no ring touching itself.

Points are corners of pixels: the pixel at row r, column c covers [c, c + 1] x [r, r + 1]. Rings of
a polygon run clockwise on the screen (y down), those of its holes counter-clockwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from naclip.export.options import Options
from naclip.export.regions import Region

Ring: TypeAlias = NDArray[Any]  # (points, 2) x, y; the last point leads to the first


@dataclass(frozen=True, eq=False)
class Polygon:
    outer: Ring
    holes: tuple[Ring, ...]

    def with_cuts(self) -> Ring:
        """One ring for formats that know no holes: there and back along a cut to each of them.

        Filled by the even-odd or the winding rule it covers the same pixels.
        """
        ring = self.outer
        for hole in self.holes:
            apart = np.square(ring[:, None] - hole[:1]).sum(2).argmin()
            there, back = ring[: apart + 1], ring[apart:]
            ring = np.concatenate([there, hole, hole[:1], back])
        return ring


def outlines(region: Region, options: Options) -> list[Polygon]:
    """Of a region, where it lies in the image; its topmost polygon first."""
    found = polygons(region.mask)
    corner = (region.left, region.top)
    return [
        Polygon(
            _simplified(polygon.outer, options) + corner,
            tuple(_simplified(hole, options) + corner for hole in polygon.holes),
        )
        for polygon in found
    ]


def polygons(mask: NDArray[np.bool_]) -> list[Polygon]:
    """One for each part whose pixels share edges."""
    parts = cv2.connectedComponents(mask.astype(np.uint8), connectivity=4)[1]
    outer: dict[int, Ring] = {}
    holes: dict[int, list[Ring]] = {}
    for ring in _rings(mask):
        x, y = ring[np.lexsort(ring.T)[0]].tolist()  # topmost, then leftmost
        if _twice_area(ring) > 0:
            outer[parts[y, x]] = ring
        else:
            holes.setdefault(parts[y - 1, x], []).append(ring)
    return [Polygon(ring, tuple(holes.get(part, ()))) for part, ring in outer.items()]


def _rings(mask: NDArray[np.bool_]) -> Iterator[Ring]:
    """Closed paths with the mask on their right-hand side."""
    rows, columns, across, down, first = _corners(np.pad(mask, 1))
    points = np.stack([columns, rows], 1)
    seen = np.zeros(len(points), np.bool_)
    next_across, next_down = across.tolist(), down.tolist()
    for start in first.tolist():
        if seen[start]:
            continue
        path = []
        at = start
        while True:
            turn = next_across[at]
            path += [at, turn]
            at = next_down[turn]
            if at == start:
                break
        seen[path] = True
        yield from _apart(points[path])


def _corners(padded: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """Where the outline turns: row, column, the corner at the other end across, and down; starts.

    Between the corners of a row of the grid, edges run from the first to the second, from the third
    to the fourth... A place where two pixels touch with their corners only counts as two corners.
    """
    a, b, c, d = padded[:-1, :-1], padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:]
    touching = (a == d) & (b == c) & (a != b)
    rows, columns = np.nonzero((a ^ b ^ c ^ d) | touching)
    twice = touching[rows, columns]
    rows, columns = np.repeat(rows, 1 + twice), np.repeat(columns, 1 + twice)
    twice = np.repeat(twice, 1 + twice)
    number = np.arange(len(rows))
    across = number ^ 1
    # Of the two corners there the left one goes with the edge upwards if the pixel above on the
    # left is inside, else with the edge downwards: the pixels are kept apart.
    is_right = np.zeros(len(rows), np.int64)
    again = twice[1:] & twice[:-1] & (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    is_right[1:] = again
    upper = np.where(a[rows, columns], is_right, 1 - is_right)
    order = np.lexsort([upper, rows, columns])
    down = np.empty_like(number)
    down[order] = order[number ^ 1]
    # An edge is walked from its left end where the mask is below, from its right end otherwise.
    left = number[::2]
    first = np.where(d[rows[left], columns[left]], left, left + 1)
    return rows, columns, across, down, first


def _apart(ring: Ring) -> Iterator[Ring]:
    """Rings that pass no point twice, out of one that may."""
    open_: list[tuple[int, int]] = []
    place: dict[tuple[int, int], int] = {}
    for point in map(tuple, ring.tolist()):
        if point in place:
            cut = place[point]
            loop = open_[cut:]
            for gone in loop:
                del place[gone]
            del open_[cut:]
            yield np.array(loop)
        place[point] = len(open_)
        open_.append(point)
    yield np.array(open_)


def _twice_area(ring: Ring) -> int:
    """Positive for clockwise on the screen."""
    x, y = ring.T
    return int(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


def _simplified(ring: Ring, options: Options) -> Ring:
    """With fewer points; as it is where nothing would be left of it."""
    if not options.simplify:
        return ring
    fewer = cv2.approxPolyDP(ring.astype(np.int32)[:, None], options.simplify, closed=True)[:, 0]
    return fewer if len(fewer) > 2 else ring
