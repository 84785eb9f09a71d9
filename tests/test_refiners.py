"""The refiners beside PAMR, against their definitions written out in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naclip import refiners
from naclip.errors import SettingsError
from naclip.maps import ScoreMaps
from naclip.refiners import crf, guided
from naclip.settings import Refinement
from naclip.windows import Stitched, bilinear

Floats = NDArray[np.float64]


def drawn(seed: int, names: int, height: int, width: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    return random.normal(size=(names, height, width)), random.normal(size=(3, height, width))


def as_torch(*arrays: Floats) -> list[torch.Tensor]:
    return [torch.from_numpy(array).float() for array in arrays]


def guided_by_hand(maps: Floats, guide: Floats, radius: int) -> Floats:
    """A least-squares fit in each square, solved by numpy; then the mean of the fits."""
    names, height, width = maps.shape

    def square(y: int, x: int) -> tuple[Any, ...]:
        return (
            ...,
            slice(max(0, y - radius), y + radius + 1),
            slice(max(0, x - radius), x + radius + 1),
        )

    slope, offset = np.empty((names, 3, height, width)), np.empty(maps.shape)
    for y in range(height):
        for x in range(width):
            colours = guide[square(y, x)].reshape(3, -1)
            covariance = np.cov(colours, bias=True) + guided.PENALTY * np.eye(3)
            for name in range(names):
                scores = maps[name][square(y, x)].ravel()
                product = (colours * scores).mean(axis=1) - colours.mean(axis=1) * scores.mean()
                a = np.linalg.solve(covariance, product)
                slope[name, :, y, x] = a
                offset[name, y, x] = scores.mean() - a @ colours.mean(axis=1)
    made = np.empty_like(maps)
    for y in range(height):
        for x in range(width):
            a = slope[square(y, x)].mean(axis=(2, 3))
            made[:, y, x] = a @ guide[:, y, x] + offset[square(y, x)].mean(axis=(1, 2))
    return made


def field_by_hand(
    logits: Floats, guide: Floats, steps: int, distances: tuple[int, ...] | None
) -> Floats:
    """Mean field over all pairs of pixels; `distances` None: every pair interacts. -> Q"""
    names, height, width = logits.shape
    places = [(y, x) for y in range(height) for x in range(width)]
    kernel = np.zeros((len(places), len(places)))
    for i, (y, x) in enumerate(places):
        for j, (v, u) in enumerate(places):
            steps_away = {abs(v - y), abs(u - x)} - {0}
            straight = len(steps_away) == 1 and (distances is None or steps_away <= set(distances))
            if i != j and (distances is None or straight):
                away = guide[:, y, x] - guide[:, v, u]
                kernel[i, j] += np.exp(-(away @ away) / (2 * crf.COLOUR**2))
    sums = kernel.sum(axis=1, keepdims=True)
    kernel = np.divide(kernel, sums, out=np.zeros_like(kernel), where=sums > 0)
    unary = logits.reshape(names, -1).T
    q = softmax(unary)
    for _ in range(steps):
        q = softmax(unary + crf.STRENGTH * kernel @ q)
    return q.T.reshape(logits.shape)


@pytest.mark.parametrize("size", [(40, 37), (5, 90), (70, 16)])
def test_the_kernel_equals_plain_torch(size: tuple[int, int]) -> None:
    maps, guide = as_torch(*drawn(1, 7, *size))
    chosen = Refinement(True, 3, (2, 16))
    plain = crf.refine_in_torch(maps, crf.interactions(guide, (2, 16)), chosen)
    torch.testing.assert_close(crf.refine(maps, guide, chosen), plain, rtol=0, atol=1e-3)


def softmax(rows: Floats) -> Floats:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


sides = st.integers(1, 9)


@settings(max_examples=15, deadline=None)
@given(height=sides, width=sides, radius=st.integers(1, 6), seed=st.integers(0, 999))
def test_guided_filter_matches_fits_by_numpy(
    height: int, width: int, radius: int, seed: int
) -> None:
    maps, guide = drawn(seed, 2, height, width)
    found = guided.refine(*as_torch(maps, guide), Refinement(refine_dilations=(1, radius)))
    np.testing.assert_allclose(found, guided_by_hand(maps, guide, radius), atol=2e-4)


@settings(max_examples=20, deadline=None)
@given(
    height=sides,
    width=sides,
    steps=st.integers(1, 4),
    distances=st.lists(st.integers(1, 10), min_size=1, max_size=3, unique=True).map(tuple),
    seed=st.integers(0, 999),
)
def test_field_matches_mean_field_over_pairs(
    height: int, width: int, steps: int, distances: tuple[int, ...], seed: int
) -> None:
    logits, guide = drawn(seed, 3, height, width)
    guide *= 0.2
    found = crf.refine(*as_torch(logits, guide), Refinement(True, steps, distances))
    expected = field_by_hand(logits, guide, steps, distances)
    np.testing.assert_allclose(found.softmax(dim=0), expected, atol=1e-5)


@pytest.mark.parametrize("size", [(2, 2), (1, 6), (7, 1)])
def test_field_matches_the_dense_field_where_every_pair_is_a_neighbour(
    size: tuple[int, int],
) -> None:
    logits, guide = drawn(3, 4, *size)
    guide *= 0.2
    found = crf.refine(*as_torch(logits, guide), Refinement(True, 5, tuple(range(1, 7))))
    expected = field_by_hand(logits, guide, 5, None)
    np.testing.assert_allclose(found.softmax(dim=0), expected, atol=1e-5)


@pytest.mark.parametrize("refiner", refiners.REFINERS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 999), names=st.integers(1, 5))
def test_order_of_the_names_does_not_matter(refiner: str, seed: int, names: int) -> None:
    maps, guide = as_torch(*drawn(seed, names, 12, 17))
    order = torch.randperm(names, generator=torch.Generator().manual_seed(seed))
    refine, chosen = refiners.REFINERS[refiner], Refinement(True, 3, (1, 4))
    found, same = refine(maps[order].clone(), guide, chosen), refine(maps.clone(), guide, chosen)
    torch.testing.assert_close(found, same[order], rtol=0, atol=1e-4)


@pytest.mark.parametrize("refiner", refiners.REFINERS)
def test_scores_that_are_equal_everywhere_stay_so(refiner: str) -> None:
    refine, chosen = refiners.REFINERS[refiner], Refinement(refine_dilations=(2, 3))
    guide = as_torch(drawn(0, 1, 20, 25)[1])[0]
    flat = torch.tensor([3.0, -1.0])[:, None, None].expand(2, 20, 25).clone()
    found = refine(flat, guide, chosen).softmax(dim=0)
    torch.testing.assert_close(found, found[:, :1, :1].expand_as(found))


@pytest.mark.parametrize("refiner", refiners.REFINERS)
def test_a_ragged_mask_moves_to_the_edge_of_the_image(refiner: str) -> None:
    """An edge at column 30 of the image; scores change sign at column 24."""
    guide = torch.where(torch.arange(60) < 30, -1.0, 1.0).expand(3, 40, 60)
    logits = torch.where(torch.arange(60) < 24, 1.0, -1.0).expand(1, 40, 60)
    maps = torch.cat([logits, -logits])
    found = refiners.REFINERS[refiner](maps.clone(), guide, Refinement())
    assert ((found[0] > found[1]) == (guide[0] < 0)).all()


def stitched(names: int, size: tuple[int, int]) -> Stitched:
    cells = torch.randn(names, 14, 14, generator=torch.Generator().manual_seed(0)) * 0.1
    a_y, a_x = (torch.from_numpy(bilinear(14, side)).float() for side in size)
    return Stitched(cells, a_y, a_x)


def score_maps(names: int, size: tuple[int, int], refiner: str) -> ScoreMaps:
    pixels = torch.rand(3, 24, 32, generator=torch.Generator().manual_seed(1)) * 2 - 1
    chosen = Refinement(True, 3, (2, 4), refiner)  # type: ignore[arg-type]
    return ScoreMaps(stitched(names, size), pixels, chosen, tuple(range(names)), 40.0)


@pytest.mark.parametrize("size", [(30, 41), (700, 900)])
@pytest.mark.parametrize("refiner", refiners.REFINERS)
def test_kernels_decode_as_plain_torch_does(refiner: str, size: tuple[int, int]) -> None:
    maps = score_maps(6, size, refiner)
    fast, plain = maps.decode(), maps.decode_in_torch()
    assert fast.margin is not None
    sure = plain.margin > 1e-4  # type: ignore[operator]
    assert torch.equal(fast.labels[sure].long(), plain.labels[sure])
    torch.testing.assert_close(fast.score, plain.score, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("refiner", refiners.REFINERS)
def test_probabilities_of_all_classes_sum_to_one(refiner: str) -> None:
    maps = score_maps(5, (300, 200), refiner)
    found = maps.probabilities(range(5), maps.decode(lean=True).log_classes)
    torch.testing.assert_close(found.sum(dim=0), torch.ones(300, 200), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("size", "expected"),
    [((512, 512), (512, 512)), ((3000, 4000), (443, 591)), ((1, 1 << 20), (1, 1 << 19))],
)
def test_working_size_has_at_most_its_pixels(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert refiners.working_size(size) == expected


def test_settings_refuse_an_unknown_refiner() -> None:
    with pytest.raises(SettingsError, match="refiner is 'crv': use one of pamr, guided, crf"):
        replace(Refinement(), refiner="crv")  # type: ignore[arg-type]
