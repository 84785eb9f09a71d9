"""The paper's way to choose sigma (appendix): how many patches gain more than tau."""

from __future__ import annotations

import math

SIGMAS = range(1, 11)
TAUS = (0.7, 0.8, 0.9)


def patches_above(tau: float, sigma: float) -> int:
    """Points of the infinite grid with phi > tau: inside a circle, Eq. (app:eq:std-circle)."""
    squared = -2 * sigma**2 * math.log(tau)
    reach = math.isqrt(int(squared))
    steps = range(-reach, reach + 1)
    return sum(y * y + x * x < squared for y in steps for x in steps)


def counts() -> list[list[int]]:
    """A row for each sigma, a column for each tau."""
    return [[patches_above(tau, sigma) for tau in TAUS] for sigma in SIGMAS]
