"""The Gaussian of neighbours against Eq. (gaussian_func), written out in loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naclip.methods.neighbourhood import gaussian

CPU = torch.device("cpu")


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.floats(0.05, 50))
def test_gaussian_matches_its_equation_and_leaves_the_class_token_at_zero(
    h: int, w: int, sigma: float
) -> None:
    omega = gaussian((h, w), sigma, CPU)
    assert omega.shape == (1 + h * w, 1 + h * w)
    assert not omega[0].any()
    assert not omega[:, 0].any()
    for i in range(h):
        for j in range(w):
            for m in range(h):
                for n in range(w):
                    expected = math.exp(-((i - m) ** 2 + (j - n) ** 2) / (2 * sigma**2))
                    found = omega[1 + i * w + j, 1 + m * w + n].item()
                    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("sigma", [5e-324, 1e-200, 1e-23, 1e200])
def test_no_sigma_is_too_small_or_too_large(sigma: float) -> None:
    omega = gaussian((2, 3), sigma, CPU)[1:, 1:]
    torch.testing.assert_close(omega, torch.eye(6) if sigma < 1 else torch.ones(6, 6))


def test_a_grid_and_its_transpose_are_not_the_same() -> None:
    """The cache of the paper's program would have mixed up grids and sigmas."""
    assert not torch.equal(gaussian((2, 6), 5.0, CPU), gaussian((6, 2), 5.0, CPU))
    assert not torch.equal(gaussian((3, 4), 5.0, CPU), gaussian((3, 4), 2.0, CPU))
