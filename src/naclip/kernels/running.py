# mypy: allow-untyped-defs
"""Softmax and argmax over names that pass by one at a time, for sixteen pixels.

A class's probability is the largest of its names'. All that is kept of the names so far:

    best, second   logits of the two best classes so far; label of the best
    classes        sum over classes of exp(logit - best)
    names, top     sum over names of exp(logit - top), top the largest: only where a class has
                   several names, else it is the sum over classes
    largest        of the class whose names are passing by
"""

from __future__ import annotations

import numpy as np

from naclip.kernels.compiled import kernel
from naclip.kernels.simd import exp_below_0, fill, fma, where_above

BEST, SECOND, LABEL, CLASSES, TOP, NAMES, LARGEST = range(7)
PARTS = 7
NOTHING = np.float32(-3e38)  # below every logit, and no infinity that could meet another


@kernel
def add_exp(total, largest, logit):
    """sum of exp(x - largest) -> the same with one more x, relative to the new largest."""
    zero = fill(np.float32(0))
    above = logit - largest
    ratio = exp_below_0(where_above(above, zero, zero - above, above))
    return where_above(above, zero, fma(total, ratio, fill(np.float32(1))), total + ratio)


@kernel
def larger(a, b):
    return where_above(a, b, a, b)


@kernel
def with_name(logit, top, names, largest, synonyms):
    """-> top, names, largest"""
    if synonyms:
        names = add_exp(names, top, logit)
        top = larger(logit, top)
        largest = larger(logit, largest)
    else:
        largest = logit
    return top, names, largest


@kernel
def with_class(logit, which, best, second, label, classes):
    """-> best, second, label, classes. Equal logits go to the earlier class, as argmax does."""
    classes = add_exp(classes, best, logit)
    label = where_above(logit, best, fill(which), label)
    second = larger(second, where_above(logit, best, best, logit))
    return larger(logit, best), second, label, classes
