"""The boundary F-score against its definition, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from naclip.evaluate.boundary import boundary_counts, boundary_f
from naclip.evaluate.metric import VOID

CLASSES = 4
Labels = NDArray[np.uint16]


def outline_by_hand(labels: Labels, label: int) -> list[tuple[int, int]]:
    height, width = labels.shape
    found = []
    for y in range(height):
        for x in range(width):
            around = [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
            inside = [labels[v, u] for v, u in around if 0 <= v < height and 0 <= u < width]
            others = [other for other in inside if other not in (label, VOID)]
            if labels[y, x] == label and others:
                found.append((y, x))
    return found


def f_by_hand(truth: Labels, prediction: Labels, label: int, tolerance: int) -> float:
    prediction = np.where(truth == VOID, VOID, prediction)
    true, guessed = outline_by_hand(truth, label), outline_by_hand(prediction, label)

    def share(of: list[tuple[int, int]], near: list[tuple[int, int]]) -> float:
        hits = [any((y - v) ** 2 + (x - u) ** 2 <= tolerance**2 for v, u in near) for y, x in of]
        return sum(hits) / len(hits) if hits else 0.0

    if not true and not guessed:
        return float("nan")
    precision, recall = share(guessed, true), share(true, guessed)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


sides = st.shared(st.tuples(st.integers(1, 9), st.integers(1, 9)), key="sides")
predictions = arrays(np.uint16, sides, elements=st.integers(0, CLASSES - 1))
truths = arrays(np.uint16, sides, elements=st.sampled_from([*range(CLASSES), VOID]))


@settings(max_examples=60, deadline=None)
@given(truth=truths, prediction=predictions, tolerance=st.integers(0, 3))
def test_f_matches_its_definition_by_hand(
    truth: Labels, prediction: Labels, tolerance: int
) -> None:
    found, average = boundary_f(boundary_counts(truth, prediction, CLASSES, tolerance))
    expected = [f_by_hand(truth, prediction, label, tolerance) for label in range(CLASSES)]
    np.testing.assert_allclose(found, expected)
    known = [f for f in expected if not np.isnan(f)]
    np.testing.assert_allclose(average, np.mean(known) if known else np.nan)


def half(column: int, width: int = 20) -> Labels:
    return np.tile((np.arange(width) >= column).astype(np.uint16), (10, 1))


@pytest.mark.parametrize(("shift", "expected"), [(0, 1.0), (2, 1.0), (3, 0.0)])
def test_an_edge_counts_up_to_two_pixels_away(shift: int, expected: float) -> None:
    assert boundary_f(boundary_counts(half(8), half(8 + shift), 2))[1] == expected


def test_sums_over_images_come_before_the_ratio() -> None:
    """10 boundary pixels a class in each image: one image right, one wrong, makes a half."""
    both = boundary_counts(half(8), half(8), 2) + boundary_counts(half(8), half(15), 2)
    np.testing.assert_array_equal(both, [[20, 10, 20, 10]] * 2)
    assert boundary_f(both)[1] == 0.5
