"""The kernels against the plain torch path: every size, vocabulary, dilation and tiling."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from naclip import refine, windows
from naclip.images import resized_size
from naclip.kernels import compiled, fused, refined
from naclip.kernels.pamr import affinity_rows, refine_planes, room
from naclip.maps import ScoreMaps
from naclip.settings import Refinement, Windowing

from ..recorded import recorded
from .problems import assert_same, score_maps

QUICK = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(max_examples=60, **QUICK)  # type: ignore[arg-type]
@given(score_maps(refine=False))
def test_labels_and_scores_equal_torch(maps: ScoreMaps) -> None:
    assert_same(maps.decode(), maps.decode_in_torch())


@settings(max_examples=40, **QUICK)  # type: ignore[arg-type]
@given(score_maps(refine=True))
def test_refined_labels_and_scores_equal_torch(maps: ScoreMaps) -> None:
    assert_same(maps.decode(), maps.decode_in_torch())


@settings(max_examples=25, **QUICK)  # type: ignore[arg-type]
@given(score_maps(refine=True), st.integers(1, 60), st.integers(1, 3))
def test_tiles_and_rounds_of_names_change_nothing(
    monkeypatch: pytest.MonkeyPatch, maps: ScoreMaps, widest: int, at_once: int
) -> None:
    whole = maps.decode()
    with monkeypatch.context() as patch:
        patch.setattr(refined, "WIDEST", widest)
        patch.setattr(refined, "FLOATS_OF_A_TILE", 30 * 40 * 40)
        patch.setattr(refined, "NAMES_AT_ONCE", at_once)
        in_tiles = maps.decode()
    assert_same(in_tiles, whole)
    np.testing.assert_allclose(in_tiles.score.numpy(), whole.score.numpy(), atol=2e-6)


@given(
    st.tuples(st.integers(1, 300), st.integers(1, 300)), st.integers(0, 40), st.integers(10, 5000)
)
def test_tiles_cover_every_pixel_once_with_all_that_can_reach_it(
    size: tuple[int, int], halo: int, pixels: int
) -> None:
    covered = np.zeros(size, int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refined, "FLOATS_OF_A_TILE", pixels)
        patch.setattr(refined, "WIDEST", 32)
        for tile in refined.tiles(size, halo, 1):
            covered[tile.rows, tile.columns] += 1
            for length, inner, outer in zip(
                size, (tile.rows, tile.columns), (tile.outer_rows, tile.outer_columns), strict=True
            ):
                assert outer.start == max(0, inner.start - halo)
                assert outer.stop == min(length, inner.stop + halo)
    assert (covered == 1).all()


@pytest.mark.parametrize(
    ("key", "steps", "dilations"),
    [
        ("steps10_dil8_16", 10, (8, 16)),
        ("steps1_dil1", 1, (1,)),
        ("steps50_dil1_2_4_8_12_24", 50, (1, 2, 4, 8, 12, 24)),
    ],
)
def test_refinement_matches_the_authors_pamr(
    key: str, steps: int, dilations: tuple[int, ...]
) -> None:
    answers = recorded("pamr.npz")
    image, logits = answers["image"], answers["logits"]
    names, height, width = logits.shape
    pad, stride = room(width, dilations)
    right = stride - pad - width
    border = ((0, 0), (0, 0), (pad, right))
    bordered = np.pad(image, border, mode="edge").astype(np.float32)
    weights = np.empty((height, 8 * len(dilations), stride - 2 * pad), np.float32)
    affinity_rows(weights, bordered, np.array(dilations), pad, 0, height)
    even = np.pad(logits, border, mode="edge").astype(np.float32)
    odd = np.empty_like(even)
    everything = (0, height, 0, width)
    refine_planes(even, odd, 0, names, weights, np.array(dilations), steps, pad, width, everything)
    ours = (odd if steps % 2 else even)[:, :, pad : pad + width]
    np.testing.assert_allclose(ours, answers[key], rtol=0, atol=2e-5)
    reference = refine.affinity(torch.from_numpy(image), dilations).numpy()
    np.testing.assert_allclose(weights[..., :width].transpose(1, 0, 2), reference, atol=2e-6)


def problem(names: int, size: tuple[int, int], refine: bool) -> ScoreMaps:
    plan = windows.plan(size, (96, 128), Windowing(window=64, stride=32), 16)
    generator = torch.Generator().manual_seed(0)
    cells = torch.rand(plan.count, names, *plan.grid, generator=generator)
    pixels = torch.randn(3, 96, 128, generator=generator)
    refinement = Refinement(refine, 2, (2,))
    return ScoreMaps(windows.stitch(cells, plan), pixels, refinement, tuple(range(names)), 40.0)


def peak_of(maps: ScoreMaps) -> int:
    """Bytes that decoding needs at once, its results included."""
    maps.decode(lean=True)
    tracemalloc.start()
    try:
        maps.decode(lean=True)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("refine", [False, True], ids=["raw", "refined"])
def test_memory_does_not_grow_with_names_times_pixels(refine: bool) -> None:
    few, many = (peak_of(problem(names, (300, 400), refine)) for names in (64, 512))
    a_map = 300 * 400 * 4
    assert many - few < 8 * a_map  # 448 more names: their grids of cells alone


def test_memory_of_refinement_is_bounded_in_large_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the results and the guide, it is one tile's whatever the image."""
    monkeypatch.setattr(refined, "FLOATS_OF_A_TILE", 60 * 120 * 120)
    monkeypatch.setattr(refined, "WIDEST", 100)
    small, large = (peak_of(problem(20, size, refine=True)) for size in ((400, 300), (1600, 300)))
    kept = 1 + 4 + 4  # label, score, log_classes
    assert large - small < 1200 * 300 * kept * 1.3


def test_multiply_adds_a_pixel_do_not_grow_with_the_image() -> None:
    """What upsampling costs a pixel and name, counted: time is linear in pixels and in names."""
    for height, width in [(375, 500), (1500, 2000), (3000, 4000), (500, 4000)]:
        size = (height, width)
        plan = windows.plan(size, resized_size(*size, Windowing()), Windowing(), 16)
        a_y, a_x = (axis.matrix().astype(np.float32) for axis in (plan.y, plan.x))
        assert fused.sparse(a_y, 1).counts.max() <= 8
        sixteen = fused.sparse(a_x, 16).counts
        assert sixteen.max() <= 14
        assert sixteen.mean() <= 6


def test_lean_keeps_what_a_segmentation_needs() -> None:
    raw, refined_maps = problem(3, (40, 50), refine=False), problem(3, (40, 50), refine=True)
    assert raw.decode(lean=True).margin is None
    assert raw.decode(lean=True).log_classes is None
    assert refined_maps.decode(lean=True).log_classes is not None
    lean = raw.probabilities([1], raw.decode(lean=True).log_classes)
    torch.testing.assert_close(lean, raw.probabilities([1], raw.decode().log_classes))


def test_equal_names_give_the_earlier_class_in_every_pixel() -> None:
    maps = problem(1, (61, 83), refine=True)
    cells = maps.stitched.cells_NYX.expand(7, -1, -1).contiguous()
    stitched = replace(maps.stitched, cells_NYX=cells)
    for refinement in (maps.refinement, Refinement(False)):
        same = replace(maps, stitched=stitched, class_of=(3, 4, 5, 6, 7, 8, 9))
        decoded = replace(same, refinement=refinement).decode()
        assert (decoded.labels == 3).all()
        assert (decoded.margin == 0).all()


def test_300_classes_fit_the_labels() -> None:
    maps = problem(300, (20, 30), refine=False)
    assert maps.decode().labels.dtype == torch.int16
    assert_same(maps.decode(), maps.decode_in_torch())


def test_threads_of_the_caller_and_ours_do_not_disturb_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maps = [problem(names, (60, 80), refine=True) for names in (3, 9, 21, 40)] * 4
    monkeypatch.setattr(compiled, "threads", lambda: 1)
    alone = [each.decode() for each in maps]
    monkeypatch.setattr(compiled, "threads", lambda: 3)
    with ThreadPoolExecutor(8) as callers:
        together = list(callers.map(ScoreMaps.decode, maps))
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one.labels, other.labels)
        torch.testing.assert_close(one.score, other.score)
