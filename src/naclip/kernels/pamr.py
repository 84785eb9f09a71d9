# mypy: allow-untyped-defs
"""Pixel-adaptive refinement (naclip.refine) on a rectangle of pixels, sixteen at a time.

A score map lies in a buffer whose rows have a margin of `pad` on both sides that repeats the
border pixels, so that a neighbour is always an offset away. Rows beyond the border are taken at
the border. Names in a buffer are planes of it.
"""

from __future__ import annotations

import numpy as np

from naclip.kernels.compiled import kernel
from naclip.kernels.simd import WIDTH, exp_below_0, fill, fma, load, root, store, where_above


def room(width: int, dilations: tuple[int, ...]) -> tuple[int, int]:
    """(margin, row length) of a buffer for rows of so many pixels."""
    pad = -(-max(dilations) // WIDTH) * WIDTH
    return pad, pad + -(-width // WIDTH) * WIDTH + pad


@kernel
def find_neighbours(offsets, y, height, stride, pad, dilations):
    """Where the 8 neighbours at each dilation of pixel (y, 0) lie in a plane."""
    k = 0
    for dilation in dilations:
        for dy in range(-1, 2):
            row = min(max(y + dy * dilation, 0), height - 1)
            for dx in range(-1, 2):
                if dy != 0 or dx != 0:
                    offsets[k] = row * stride + pad + dx * dilation
                    k += 1


@kernel
def affinity_rows(weights, guide, dilations, pad, first, last):
    """Rows of the affinity (rows, neighbours, width): as naclip.refine.affinity, in its order."""
    channels, height, stride = guide.shape
    count, width = weights.shape[1:]
    offsets = np.empty(count, np.int64)
    logits = np.empty((count, 16), np.float32)
    samples = fill(np.float32(count + len(dilations)))
    less_one = fill(np.float32(count + len(dilations) - 1))
    zero = fill(np.float32(0))
    for y in range(first, last):
        find_neighbours(offsets, y, height, stride, pad, dilations)
        for x in range(0, width, 16):
            for k in range(count):
                store(logits, 16 * k, zero)
            for channel in range(channels):
                plane = channel * height * stride
                centre = load(guide, plane + y * stride + pad + x)
                total = zero
                for k in range(count):
                    total = total + load(guide, plane + offsets[k] + x)
                    if k % 8 == 7:  # the centre counts once a dilation
                        total = total + centre
                mean = total / samples
                squares = zero
                for k in range(count):
                    away = load(guide, plane + offsets[k] + x) - mean
                    squares = squares + away * away
                    if k % 8 == 7:
                        squares = squares + (centre - mean) * (centre - mean)
                deviation = root(squares / less_one)
                sharpness = fill(np.float32(1)) / (
                    fill(np.float32(1e-8)) + fill(np.float32(0.1)) * deviation
                )
                for k in range(count):
                    away = load(guide, plane + offsets[k] + x) - centre
                    away = where_above(away, zero, away, zero - away)
                    store(logits, 16 * k, load(logits, 16 * k) + away * sharpness)
            _softmax_of_minus(logits, channels)
            for k in range(count):
                store(weights, (y * count + k) * width + x, load(logits, 16 * k))


@kernel
def _softmax_of_minus(logits, channels):
    """Rows of sixteen sums over channels -> softmax over rows of minus their means."""
    count = logits.shape[0]
    share = fill(np.float32(channels))
    least = load(logits, 0) / share
    for k in range(count):
        mean = load(logits, 16 * k) / share
        store(logits, 16 * k, mean)
        least = where_above(least, mean, mean, least)
    total = fill(np.float32(0))
    for k in range(count):
        value = exp_below_0(least - load(logits, 16 * k))
        store(logits, 16 * k, value)
        total = total + value
    for k in range(count):
        store(logits, 16 * k, load(logits, 16 * k) / total)


@kernel
def repeat_border(buffer, plane, y, width, pad):
    row = (plane * buffer.shape[1] + y) * buffer.shape[2]
    left = fill(buffer[plane, y, pad])
    right = fill(buffer[plane, y, pad + width - 1])
    for x in range(0, pad, 16):
        store(buffer, row + x, left)
        store(buffer, row + pad + width + x, right)


@kernel
def step_of_4(source, target, plane, weights, offsets, y, x_first, x_last, pad):
    """One step of one row of four names: each weight is loaded once for all four."""
    count, width = weights.shape[1:]
    size = source.shape[1] * source.shape[2]
    a, b, c, d = plane * size, (plane + 1) * size, (plane + 2) * size, (plane + 3) * size
    for x in range(x_first, x_last, 16):
        total_a = total_b = total_c = total_d = fill(np.float32(0))
        for k in range(count):
            weight = load(weights, (y * count + k) * width + x)
            at = offsets[k] + x
            total_a = fma(weight, load(source, a + at), total_a)
            total_b = fma(weight, load(source, b + at), total_b)
            total_c = fma(weight, load(source, c + at), total_c)
            total_d = fma(weight, load(source, d + at), total_d)
        at = y * source.shape[2] + pad + x
        store(target, a + at, total_a)
        store(target, b + at, total_b)
        store(target, c + at, total_c)
        store(target, d + at, total_d)


@kernel
def step_of_1(source, target, plane, weights, offsets, y, x_first, x_last, pad):
    count, width = weights.shape[1:]
    first = plane * source.shape[1] * source.shape[2]
    for x in range(x_first, x_last, 16):
        total = fill(np.float32(0))
        for k in range(count):
            weight = load(weights, (y * count + k) * width + x)
            total = fma(weight, load(source, first + offsets[k] + x), total)
        store(target, first + y * source.shape[2] + pad + x, total)


@kernel
def refine_planes(even, odd, first, last, weights, dilations, steps, pad, width, inner):
    """All steps for the planes first..last-1 of `even`; an odd number of steps ends in `odd`.

    inner: (top, bottom, left, right) of the pixels that matter. Around them, each step needs one
    reach less than the step before it; the rest of the buffers is left as it is.

    Steps follow each other down the image, a band of rows apart: a band is one reach high, so its
    neighbours above and below are one step ahead when it is made, and the values it replaces in
    the other buffer are those that nobody needs any more. What a step wrote is then still in the
    cache for the next.
    """
    height, reach = even.shape[1], max(dilations)
    top, bottom, left, right = inner
    band = max(16, reach)
    bands = -(-height // band)
    offsets = np.empty(weights.shape[1], np.int64)
    for wave in range(bands + steps - 1):
        for step in range(max(0, wave - bands + 1), min(steps, wave + 1)):
            spare = (steps - 1 - step) * reach
            source, target = (even, odd) if step % 2 == 0 else (odd, even)
            begin = max((wave - step) * band, top - spare)
            end = min((wave - step + 1) * band, bottom + spare, height)
            x_first = max(0, left - spare) // 16 * 16
            x_last = min(width, right + spare)
            for y in range(begin, end):
                find_neighbours(offsets, y, height, even.shape[2], pad, dilations)
                plane = first
                while plane + 4 <= last:
                    step_of_4(source, target, plane, weights, offsets, y, x_first, x_last, pad)
                    plane += 4
                while plane < last:
                    step_of_1(source, target, plane, weights, offsets, y, x_first, x_last, pad)
                    plane += 1
                for plane in range(first, last):
                    repeat_border(target, plane, y, width, pad)
