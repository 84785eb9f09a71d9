"""PAMR against its definition written out pixel by pixel."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naclip import refine
from naclip.settings import Refinement

Floats = NDArray[np.float64]
PLACES = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]


def pamr_by_hand(image: Floats, maps: Floats, steps: int, dilations: tuple[int, ...]) -> Floats:
    """In float64, one pixel at a time; borders are replicated."""
    _, height, width = image.shape

    def at(array: Floats, y: int, x: int) -> Floats:
        return array[:, min(max(y, 0), height - 1), min(max(x, 0), width - 1)]

    affinity: dict[tuple[int, int], list[tuple[float, int, int]]] = {}
    for y in range(height):
        for x in range(width):
            offsets = [(dy * d, dx * d) for d in dilations for dy, dx in PLACES]
            samples = np.array([at(image, y + dy, x + dx) for dy, dx in offsets])
            std = samples.std(axis=0, ddof=1)  # the centre once a dilation
            neighbours = [(dy, dx) for dy, dx in offsets if (dy, dx) != (0, 0)]
            logits = [
                -float(
                    np.mean(np.abs(at(image, y + dy, x + dx) - image[:, y, x]) / (1e-8 + 0.1 * std))
                )
                for dy, dx in neighbours
            ]
            powers = [math.exp(logit - max(logits)) for logit in logits]
            affinity[y, x] = [
                (power / sum(powers), dy, dx)
                for power, (dy, dx) in zip(powers, neighbours, strict=True)
            ]
    for _ in range(steps):
        refined = np.zeros_like(maps)
        for (y, x), weights in affinity.items():
            refined[:, y, x] = sum(w * at(maps, y + dy, x + dx) for w, dy, dx in weights)
        maps = refined
    return maps


@settings(max_examples=25, deadline=None)
@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    steps=st.integers(1, 3),
    dilations=st.lists(st.integers(1, 20), min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, 1000),
)
def test_refinement_matches_pamr_by_hand_even_where_dilations_exceed_the_image(
    height: int, width: int, steps: int, dilations: tuple[int, ...], seed: int
) -> None:
    random = np.random.default_rng(seed)
    image = random.normal(size=(3, height, width)).astype(np.float32)
    maps = random.normal(size=(2, height, width)).astype(np.float32)
    weights = refine.affinity(torch.from_numpy(image), dilations)
    ours = refine.refine(torch.from_numpy(maps), weights, Refinement(True, steps, dilations))
    plain = pamr_by_hand(image.astype(float), maps.astype(float), steps, dilations)
    np.testing.assert_allclose(ours.numpy(), plain, rtol=0, atol=2e-5)


def test_a_flat_image_gives_every_neighbour_the_same_weight() -> None:
    """No difference and no deviation: the 1e-8 of the formula, and no NaN."""
    weights = refine.affinity(torch.full((3, 5, 7), 0.3), (8, 16))
    torch.testing.assert_close(weights, torch.full((16, 5, 7), 1 / 16))


def test_scores_do_not_cross_an_edge_of_the_image() -> None:
    """Left half black, right half white: each half keeps to its own scores."""
    image = torch.zeros(3, 20, 20)
    image[:, :, 10:] = 1
    maps = (image[:1] > 0).float()
    weights = refine.affinity(image, (1,))
    refined = refine.refine(maps, weights, Refinement(True, 10, (1,)))
    torch.testing.assert_close(refined, maps, rtol=0, atol=1e-2)


def test_guidance_matches_torch_interpolate_of_the_resized_image() -> None:
    pixels = torch.randn(3, 21, 30)
    ours = refine.guidance(pixels, (50, 44))
    theirs = F.interpolate(pixels[None], (50, 44), mode="bilinear", align_corners=False)[0]
    torch.testing.assert_close(ours, theirs)


def test_names_are_refined_alone() -> None:
    """Refining all names at once and one at a time is the same: blocks are exact."""
    torch.manual_seed(0)
    image, maps = torch.randn(3, 12, 15), torch.randn(4, 12, 15)
    weights, how = refine.affinity(image, (1, 2)), Refinement(True, 3, (1, 2))
    together = refine.refine(maps, weights, how)
    alone = torch.cat([refine.refine(maps[i : i + 1], weights, how) for i in range(4)])
    torch.testing.assert_close(together, alone)
