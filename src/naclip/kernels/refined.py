# mypy: allow-untyped-defs
"""Score grids -> refined score maps -> labels and scores, a tile of the image at a time.

A tile is computed with a halo as wide as refinement can reach (steps x largest dilation), so that
its pixels come out as if the whole image had been refined at once; borders are repeated only where
the image ends. Names pass through a tile in rounds: their maps are made, refined and decoded, and
their memory serves the next. Small images are one tile.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from naclip.kernels.compiled import announce, kernel, spread, threads
from naclip.kernels.fused import Floats, Grids, Planes, finish, row_of_cells, upsampled
from naclip.kernels.pamr import affinity_rows, refine_planes, repeat_border, room
from naclip.kernels.running import (
    BEST,
    CLASSES,
    LABEL,
    LARGEST,
    NAMES,
    NOTHING,
    PARTS,
    SECOND,
    TOP,
    with_class,
    with_name,
)
from naclip.kernels.simd import fill, load, store
from naclip.settings import Refinement

FLOATS_OF_A_TILE = 1 << 26  # 256 MB: affinities and the maps of a round of names
NAMES_AT_ONCE = 8  # of a thread
WIDEST = 768  # of a tile with its halo where memory does not ask for less: cache


@dataclass(frozen=True)
class Tile:
    rows: slice  # of the image: what the tile is responsible for
    columns: slice
    outer_rows: slice  # with the halo, within the image
    outer_columns: slice

    @property
    def inner(self) -> tuple[int, int, int, int]:
        """(top, bottom, left, right) of the tile within its halo."""
        rows, columns = self.rows, self.columns
        y, x = self.outer_rows.start, self.outer_columns.start
        return rows.start - y, rows.stop - y, columns.start - x, columns.stop - x


def tiles(size: tuple[int, int], halo: int, floats_a_pixel: int) -> Iterator[Tile]:
    """Tiles that fit the memory with their halo, in reading order."""
    height, width = size
    pixels = FLOATS_OF_A_TILE // floats_a_pixel
    columns = _parts(width, halo, max(WIDEST, int(pixels**0.5)))
    widest = max(outer.stop - outer.start for _, outer in columns)
    for rows, outer_rows in _parts(height, halo, pixels // widest):
        for inner, outer in columns:
            yield Tile(rows, inner, outer_rows, outer)


def _parts(length: int, halo: int, longest: int) -> list[tuple[slice, slice]]:
    """Equal parts of an axis, each with its halo; at least as long as the halo is wide."""
    if length <= longest:
        return [(slice(0, length), slice(0, length))]
    count = -(-length // max(longest - 2 * halo, halo, 16))
    edges = [length * part // count for part in range(count + 1)]
    return [
        (slice(a, b), slice(max(0, a - halo), min(length, b + halo)))
        for a, b in itertools.pairwise(edges)
    ]


def decode(
    grid: Grids,
    a_x: Floats,
    guide: Floats,
    refinement: Refinement,
    ends: NDArray[np.bool_],
    labels: Floats,
    planes: Planes,
) -> None:
    """Fill the planes. guide: the image (3, H, W); the rest as for fused.decode."""
    announce()
    halo = refinement.refine_steps * max(refinement.refine_dilations)
    neighbours = 8 * len(refinement.refine_dilations)
    at_once = min(len(ends), NAMES_AT_ONCE * threads())
    rounds = np.linspace(0, len(ends), -(-len(ends) // at_once) + 1).astype(int)
    largest = int(np.diff(rounds).max())
    for tile in tiles(grid.size, halo, neighbours + 2 * largest + PARTS):
        work = _Work(tile, guide, refinement, largest)
        part = grid.part(tile.outer_rows, tile.outer_columns, a_x)
        for first, last in itertools.pairwise(rounds):
            work.refine(part, first, last)
            work.decode(ends, labels, first, last)
        work.finish(planes, synonyms=not ends.all())


class _Work:
    """The memory of a tile and the steps of its computation."""

    def __init__(self, tile: Tile, guide: Floats, refinement: Refinement, names: int) -> None:
        self.tile = tile
        self.height = tile.outer_rows.stop - tile.outer_rows.start
        self.width = tile.outer_columns.stop - tile.outer_columns.start
        self.steps = refinement.refine_steps
        self.dilations = np.array(refinement.refine_dilations)
        self.pad, stride = room(self.width, refinement.refine_dilations)
        self.even = np.empty((names, self.height, stride), np.float32)
        self.odd = np.empty_like(self.even)
        wide = stride - 2 * self.pad
        self.state = np.empty((PARTS, self.height, wide), np.float32)
        self.state[[BEST, SECOND, TOP, LARGEST]] = NOTHING
        self.state[[LABEL, CLASSES, NAMES]] = 0
        self.weights = self._affinity(guide[:, tile.outer_rows, tile.outer_columns], wide)

    def _affinity(self, guide: Floats, wide: int) -> Floats:
        right = wide + self.pad - self.width
        bordered = np.pad(guide, ((0, 0), (0, 0), (self.pad, right)), mode="edge")
        weights = np.empty((self.height, 8 * len(self.dilations), wide), np.float32)

        def rows(first: int, last: int) -> None:
            affinity_rows(weights, bordered, self.dilations, self.pad, first, last)

        spread(rows, self.height, pieces=32)
        return weights

    def refine(self, grid: Grids, first: int, last: int) -> None:
        """The maps of some names, made and refined: in `even`, or `odd` after odd steps."""

        def make(top: int, bottom: int) -> None:
            _make_maps(
                *(self.even, grid.cells_YNX, grid.y.inputs, grid.y.counts, grid.y.weights),
                *(grid.x.inputs, grid.x.counts, grid.x.weights),
                *(first, last, self.pad, self.width, top, bottom),
            )

        def planes(start: int, stop: int) -> None:
            refine_planes(
                *(self.even, self.odd, start, stop, self.weights, self.dilations),
                *(self.steps, self.pad, self.width, self.tile.inner),
            )

        spread(make, self.height, pieces=16)
        spread(planes, last - first)

    def decode(self, ends: NDArray[np.bool_], labels: Floats, first: int, last: int) -> None:
        maps = self.even if self.steps % 2 == 0 else self.odd
        top, bottom, left, right = self.tile.inner

        def rows(start: int, stop: int) -> None:
            y = (top + start, top + stop)
            _absorb(self.state, maps, self.pad, ends, labels, first, last, *y, left, right)

        spread(rows, bottom - top, pieces=16)

    def finish(self, planes: Planes, synonyms: bool) -> None:
        if not synonyms:
            self.state[NAMES] = self.state[CLASSES]
        top, _, left, right = self.tile.inner
        rows, columns = self.tile.rows, self.tile.columns
        _finish_tile(
            *(self.state[..., :right], left, top, planes.labels, *planes.parts()),
            *(rows.start, rows.stop, columns.start),
        )


@kernel
def _make_maps(
    maps,
    cells,
    y_inputs,
    y_counts,
    y_weights,
    x_inputs,
    x_counts,
    x_weights,
    first,
    last,
    pad,
    width,
    top,
    bottom,
):
    """Rows top..bottom-1 of the score maps of the names first..last-1, borders repeated."""
    row = np.empty((cells.shape[1], cells.shape[2]), np.float32)
    for y in range(top, bottom):
        row_of_cells(row, cells, y, y_inputs, y_counts, y_weights)
        for name in range(first, last):
            start = ((name - first) * maps.shape[1] + y) * maps.shape[2] + pad
            for block in range(x_inputs.shape[0]):
                value = upsampled(row, name, block, x_inputs, x_counts, x_weights)
                store(maps, start + 16 * block, value)
            repeat_border(maps, name - first, y, width, pad)


@kernel
def _absorb(state, maps, pad, ends, labels_of, first, last, top, bottom, left, right):
    """Refined maps of the names first..last-1 into the running state of their pixels."""
    synonyms = not ends.all()
    part, width = state.shape[1] * state.shape[2], state.shape[2]
    plane = maps.shape[1] * maps.shape[2]
    for y in range(top, bottom):
        for x in range(left // 16 * 16, right, 16):
            at = y * width + x
            best, second = load(state, BEST * part + at), load(state, SECOND * part + at)
            label, classes = load(state, LABEL * part + at), load(state, CLASSES * part + at)
            top_, names = load(state, TOP * part + at), load(state, NAMES * part + at)
            largest = load(state, LARGEST * part + at)
            for name in range(first, last):
                logit = load(maps, (name - first) * plane + y * maps.shape[2] + pad + x)
                top_, names, largest = with_name(logit, top_, names, largest, synonyms)
                if ends[name]:
                    best, second, label, classes = with_class(
                        largest, labels_of[name], best, second, label, classes
                    )
                    largest = fill(NOTHING)
            store(state, BEST * part + at, best)
            store(state, SECOND * part + at, second)
            store(state, LABEL * part + at, label)
            store(state, CLASSES * part + at, classes)
            store(state, TOP * part + at, top_)
            store(state, NAMES * part + at, names)
            store(state, LARGEST * part + at, largest)


@kernel
def _finish_tile(
    state, left, top, labels, score, probability, margin, log_classes, first, last, x0
):
    for y in range(first, last):
        finish(state, top + y - first, left, labels, score, probability, margin, log_classes, y, x0)
