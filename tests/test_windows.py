"""Cutting and stitching against the plain way: upsample, pad, sum, divide, resize."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from naclip import windows
from naclip.settings import Windowing
from naclip.windows import Plan

LENGTHS = st.integers(1, 400)
FEW = settings(max_examples=60, deadline=None)


@st.composite
def windowings(draw: st.DrawFn, smallest: int = 1) -> Windowing:
    window = draw(st.integers(smallest, 120))
    return Windowing(window=window, stride=draw(st.integers(1, window)))


@given(LENGTHS, windowings())
def test_windows_cover_every_pixel_and_end_at_the_border(length: int, w: Windowing) -> None:
    window = min(w.window, length)
    starts = windows.starts(length, window, w.stride)
    covered = np.zeros(length, dtype=int)
    for start in starts:
        covered[start : start + window] += 1
    assert covered.min() >= 1
    assert starts[0] == 0
    assert starts[-1] + window == length
    assert all(0 < b - a <= w.stride for a, b in itertools.pairwise(starts))


@given(LENGTHS, windowings())
def test_starts_match_mmsegs_loop(length: int, w: Windowing) -> None:
    """mmsegmentation's slide_inference, along one axis."""
    grids = max(length - w.window + w.stride - 1, 0) // w.stride + 1
    theirs = []
    for index in range(grids):
        end = min(index * w.stride + w.window, length)
        theirs.append(max(end - w.window, 0))
    assert list(windows.starts(length, min(w.window, length), w.stride)) == theirs


@given(st.integers(1, 60), st.integers(1, 200))
def test_bilinear_matrix_matches_torch_interpolate(size_in: int, size_out: int) -> None:
    signal = torch.eye(size_in, dtype=torch.float64)[:, None]  # a unit at each place
    theirs = F.interpolate(signal, size=size_out, mode="linear", align_corners=False)[:, 0].T
    np.testing.assert_allclose(windows.bilinear(size_in, size_out), theirs.numpy(), atol=1e-12)


@FEW
@given(st.integers(1, 90), st.integers(1, 90), windowings(), st.booleans())
def test_cut_takes_the_pixels_of_each_window_row_by_row(
    height: int, width: int, w: Windowing, whole: bool
) -> None:
    w = Windowing(window=w.window, stride=w.stride, whole=whole)
    pixels = torch.arange(3 * height * width, dtype=torch.float32).view(3, height, width)
    plan = windows.plan((height, width), (height, width), w, patch=1)
    batch = windows.cut(pixels, plan)
    assert len(batch) == plan.count
    places = itertools.product(plan.y.starts, plan.x.starts)
    for window, (top, left) in zip(batch, places, strict=True):
        assert window.shape == (3, *plan.window)
        assert window[0, 0, 0] == pixels[0, top, left]
        assert window[2, -1, -1] == pixels[2, top + plan.window[0] - 1, left + plan.window[1] - 1]
    if whole:
        assert plan.count == 1
        assert torch.equal(batch[0], pixels)


def stitched_plainly(scores: Tensor, plan: Plan, original: tuple[int, int]) -> Tensor:
    """The program's way: each window's grid to its pixels, padded into place, summed, divided."""
    size = (plan.y.resized, plan.x.resized)
    total = scores.new_zeros(scores.shape[1], *size)
    count = scores.new_zeros(1, *size)
    (height, width), places = plan.window, itertools.product(plan.y.starts, plan.x.starts)
    for grid, (top, left) in zip(scores, places, strict=True):
        up = F.interpolate(grid[None], (height, width), mode="bilinear", align_corners=False)
        margins = (left, size[1] - left - width, top, size[0] - top - height)
        total += F.pad(up[0], margins)
        count += F.pad(torch.ones(1, height, width), margins)
    mean = (total / count)[None]
    return F.interpolate(mean, original, mode="bilinear", align_corners=False)[0]


@FEW
@given(
    resized=st.tuples(st.integers(16, 90), st.integers(16, 90)),
    original=st.tuples(st.integers(1, 130), st.integers(1, 130)),
    w=windowings(smallest=16),
    patch=st.integers(1, 16),
    whole=st.booleans(),
    seed=st.integers(0, 9),
)
def test_stitch_matches_upsample_pad_sum_divide_resize(
    resized: tuple[int, int],
    original: tuple[int, int],
    w: Windowing,
    patch: int,
    whole: bool,
    seed: int,
) -> None:
    w = Windowing(window=w.window, stride=w.stride, whole=whole)
    plan = windows.plan(original, resized, w, patch)
    torch.manual_seed(seed)
    scores = torch.randn(plan.count, 3, *plan.grid)
    stitched = windows.stitch(scores, plan)
    assert stitched.size == original
    assert stitched.names == 3
    ours, plain = stitched.maps(0, 3), stitched_plainly(scores, plan, original)
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-4)
    torch.testing.assert_close(stitched.maps(1, 2), ours[1:2], rtol=0, atol=1e-5)


@given(st.integers(1, 60), st.integers(1, 60), windowings(), st.integers(1, 100))
@FEW
def test_stitching_a_constant_gives_the_constant(
    height: int, width: int, w: Windowing, original: int
) -> None:
    plan = windows.plan((original, original), (height, width), w, patch=1)
    maps = windows.stitch(torch.full((plan.count, 1, *plan.grid), 0.7), plan).maps(0, 1)
    torch.testing.assert_close(maps, torch.full((1, original, original), 0.7), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "count"), [((336, 504), 2 * 4), ((336, 448), 2 * 3), ((224, 224), 1), ((100, 300), 2)]
)
def test_the_papers_windows_are_224_by_112(size: tuple[int, int], count: int) -> None:
    plan = windows.plan(size, size, Windowing(), patch=16)
    assert plan.count == count
    assert plan.x.starts[-1] == size[1] - 224
