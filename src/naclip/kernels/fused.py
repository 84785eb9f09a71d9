# mypy: allow-untyped-defs
"""Score grids of names -> labels and scores, with no score map at the original size.

logits = A_y L A_x^T, one row of pixels at a time: a row of A_y has a few nonzeros, so the row's
cells cost next to nothing; sixteen pixels of it need the few columns of A_x that they touch, the
same for all names. What is left per pixel and name is a handful of multiply-adds, one exp and one
comparison, all in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from naclip.kernels.compiled import announce, kernel, spread
from naclip.kernels.running import (
    BEST,
    CLASSES,
    LABEL,
    NAMES,
    NOTHING,
    PARTS,
    SECOND,
    with_class,
    with_name,
)
from naclip.kernels.simd import WIDTH, fill, fma, load, store

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Sparse:
    """A matrix (outputs, inputs) with few nonzeros, for `block` outputs at a time."""

    inputs: Integers  # (blocks, most nonzeros), filled up with zeros
    counts: Integers  # (blocks,)
    weights: Floats  # (blocks, most nonzeros, block)


def sparse(matrix: Floats, block: int) -> Sparse:
    outputs, inputs = matrix.shape
    blocks = -(-outputs // block)
    padded = np.zeros((blocks * block, inputs), np.float32)
    padded[:outputs] = matrix
    grouped = padded.reshape(blocks, block, inputs)
    used = (grouped != 0).any(axis=1)
    counts = used.sum(axis=1)
    chosen = np.argsort(~used, axis=1, kind="stable")[:, : max(1, counts.max())]
    weights = np.take_along_axis(grouped, chosen[:, None, :], axis=2).transpose(0, 2, 1)
    return Sparse(chosen, counts, np.ascontiguousarray(weights))


@dataclass(frozen=True)
class Grids:
    """The score grids of all names, scaled to logits, and the way up to the original size."""

    cells_YNX: Floats  # cells of a row of names side by side, the last axis padded to 16
    y: Sparse  # by single rows
    x: Sparse  # by sixteen columns
    size: tuple[int, int]

    def part(self, rows: slice, columns: slice, a_x: Floats) -> Grids:
        """The same for a rectangle of pixels; `a_x` is the whole matrix."""
        y = Sparse(self.y.inputs[rows], self.y.counts[rows], self.y.weights[rows])
        size = (rows.stop - rows.start, columns.stop - columns.start)
        return Grids(self.cells_YNX, y, sparse(a_x[columns], WIDTH), size)


def grids(cells_NYX: Floats, a_y: Floats, a_x: Floats, scale: float) -> Grids:
    names, rows, columns = cells_NYX.shape
    padded = np.zeros((rows, names, -(-columns // WIDTH) * WIDTH), np.float32)
    np.multiply(cells_NYX.transpose(1, 0, 2), np.float32(scale), out=padded[..., :columns])
    return Grids(padded, sparse(a_y, 1), sparse(a_x, WIDTH), (a_y.shape[0], a_x.shape[0]))


@dataclass(frozen=True)
class Planes:
    """What is wanted of each pixel; planes that are not wanted have no elements."""

    labels: NDArray[np.unsignedinteger]
    score: Floats
    probability: Floats
    margin: Floats
    log_classes: Floats

    def parts(self) -> tuple[Floats, ...]:
        return self.score, self.probability, self.margin, self.log_classes


def decode(grid: Grids, ends: NDArray[np.bool_], labels: Floats, planes: Planes) -> None:
    """Fill the planes. `ends`: a name is the last of its class; `labels`: of each name."""
    announce()

    def rows(first: int, last: int) -> None:
        _decode(
            *(grid.cells_YNX, grid.y.inputs, grid.y.counts, grid.y.weights),
            *(grid.x.inputs, grid.x.counts, grid.x.weights),
            *(ends, labels, planes.labels, *planes.parts(), first, last),
        )

    spread(rows, grid.size[0], pieces=64)


@kernel
def row_of_cells(out, cells, y, y_inputs, y_counts, y_weights):
    """Row y of A_y L: (names, cells) into `out`."""
    plane = cells.shape[1] * cells.shape[2]
    for at in range(0, plane, 16):
        total = fill(np.float32(0))
        for k in range(y_counts[y]):
            weight = fill(y_weights[y, k, 0])
            total = fma(weight, load(cells, y_inputs[y, k] * plane + at), total)
        store(out, at, total)


@kernel
def upsampled(cells, name, block, inputs, counts, weights):
    """Sixteen pixels of a row of one name."""
    first = block * weights.shape[1] * 16
    total = fill(np.float32(0))
    for k in range(counts[block]):
        total = fma(load(weights, first + 16 * k), fill(cells[name, inputs[block, k]]), total)
    return total


@kernel
def _decode(
    cells,
    y_inputs,
    y_counts,
    y_weights,
    x_inputs,
    x_counts,
    x_weights,
    ends,
    labels_of,
    labels,
    score,
    probability,
    margin,
    log_classes,
    first,
    last,
):
    count, blocks = cells.shape[1], x_inputs.shape[0]
    synonyms = not ends.all()
    row = np.empty((count, cells.shape[2]), np.float32)
    state = np.empty((PARTS, 1, blocks * 16), np.float32)
    part = state.shape[2]
    for y in range(first, last):
        row_of_cells(row, cells, y, y_inputs, y_counts, y_weights)
        for block in range(blocks):
            best = second = top = largest = fill(NOTHING)
            label = classes = names = fill(np.float32(0))
            for name in range(count):
                logit = upsampled(row, name, block, x_inputs, x_counts, x_weights)
                top, names, largest = with_name(logit, top, names, largest, synonyms)
                if ends[name]:
                    best, second, label, classes = with_class(
                        largest, labels_of[name], best, second, label, classes
                    )
                    largest = fill(NOTHING)
            at = block * 16
            store(state, BEST * part + at, best)
            store(state, SECOND * part + at, second)
            store(state, LABEL * part + at, label)
            store(state, CLASSES * part + at, classes)
            store(state, NAMES * part + at, names if synonyms else classes)
        finish(state, 0, 0, labels, score, probability, margin, log_classes, y, 0)


@kernel
def finish(state, row, skip, labels, score, probability, margin, log_classes, y, x0):
    """A row of the running state, from pixel `skip` on -> row y of the planes, from x0 on."""
    width = min(state.shape[2] - skip, labels.shape[1] - x0)
    for x in range(width):
        labels[y, x0 + x] = labels.dtype.type(state[LABEL, row, skip + x])
    for x in range(width):
        score[y, x0 + x] = np.float32(1) / state[CLASSES, row, skip + x]
    if probability.size:
        for x in range(width):
            probability[y, x0 + x] = np.float32(1) / state[NAMES, row, skip + x]
    if margin.size:
        for x in range(width):
            behind = np.exp(state[SECOND, row, skip + x] - state[BEST, row, skip + x])
            margin[y, x0 + x] = (np.float32(1) - behind) / state[NAMES, row, skip + x]
    if log_classes.size:
        for x in range(width):
            total = np.log(state[CLASSES, row, skip + x])
            log_classes[y, x0 + x] = state[BEST, row, skip + x] + total
