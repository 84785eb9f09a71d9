"""Images, names and score grids to decode, drawn by hypothesis."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import strategies as st

from naclip import windows
from naclip.decode import Decoded
from naclip.maps import ScoreMaps
from naclip.settings import Refinement, Windowing

CLOSE = 5e-5  # probabilities: what rounding may do to them where logits reach 40


@st.composite
def score_maps(draw: st.DrawFn, refine: bool) -> ScoreMaps:
    original = draw(st.tuples(st.integers(1, 70), st.integers(1, 150)))
    resized = draw(st.tuples(st.integers(8, 60), st.integers(8, 90)))
    window = draw(st.integers(8, 40))
    windowing = Windowing(whole=draw(st.booleans()), window=window, stride=max(1, window // 2))
    plan = windows.plan(original, resized, windowing, 8)
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=9))
    class_of = tuple(itertools.chain(*([label] * n for label, n in enumerate(counts))))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    cells = torch.rand(plan.count, len(class_of), *plan.grid, generator=generator) * 0.4
    pixels = torch.randn(3, *resized, generator=generator)
    if draw(st.booleans()):
        pixels[:, : resized[0] // 2] = 0.3  # a part without any texture
    dilations = draw(st.sampled_from([(1,), (8, 16), (2, 5), (3, 1, 9), (17,)]))
    refinement = Refinement(refine, draw(st.integers(1, 6)), dilations)
    scale = draw(st.sampled_from([1.0, 40.0, 100.0]))
    return ScoreMaps(windows.stitch(cells, plan), pixels, refinement, class_of, scale)


def assert_same(ours: Decoded, reference: Decoded) -> None:
    """Planes within rounding; labels equal wherever rounding cannot decide them."""
    off = {"score": CLOSE, "probability": CLOSE, "margin": 2 * CLOSE}  # a margin is of two
    for name, atol in off.items():
        a, b = getattr(ours, name).numpy(), getattr(reference, name).numpy()
        np.testing.assert_allclose(a, b, atol=atol, err_msg=name)
    np.testing.assert_allclose(ours.log_classes, reference.log_classes, atol=1e-4, rtol=1e-6)
    clear = reference.margin.numpy() > off["margin"]  # type: ignore[union-attr]
    np.testing.assert_array_equal(ours.labels.numpy()[clear], reference.labels.numpy()[clear])
