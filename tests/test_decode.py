"""Labels and probabilities against the whole softmax, written out in numpy."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naclip.decode import Decoded, decode
from naclip.maps import ScoreMaps
from naclip.settings import Refinement
from naclip.windows import Stitched

Floats = NDArray[np.float64]


@dataclass
class Plainly:
    """Everything at once: (classes, H, W)."""

    names: Floats  # softmax over names, the largest of each class
    classes: Floats  # the same, renormalised over classes

    def labels(self, threshold: float = 0.0) -> NDArray[np.int64]:
        best = self.names.argmax(axis=0)
        return np.where(self.names.max(axis=0) < threshold, 0, best)


def decoded_plainly(maps: Floats, class_of: tuple[int, ...], scale: float) -> Plainly:
    logits = maps.astype(np.float64) * scale
    powers = np.exp(logits - logits.max(axis=0))
    softmax = powers / powers.sum(axis=0)
    one_hot = np.eye(max(class_of) + 1)[list(class_of)].T  # (classes, names)
    names = (one_hot[:, :, None, None] * softmax).max(axis=1)
    return Plainly(names, names / names.sum(axis=0))


@st.composite
def problems(draw: st.DrawFn) -> tuple[torch.Tensor, tuple[int, ...], float]:
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    class_of = tuple(itertools.chain(*([label] * n for label, n in enumerate(counts))))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    maps = torch.rand(len(class_of), 4, 5, generator=generator) * 2 - 1
    return maps, class_of, draw(st.sampled_from([0.5, 1.0, 40.0, 100.0]))


def in_blocks(maps: torch.Tensor, size: int) -> list[tuple[int, torch.Tensor]]:
    return [(first, maps[first : first + size]) for first in range(0, len(maps), size)]


@settings(max_examples=80, deadline=None)
@given(problems(), st.integers(1, 8), st.sampled_from([0.0, 0.1, 0.3, 0.6, 0.95]))
def test_labels_match_softmax_over_names_max_over_classes_threshold_argmax(
    problem: tuple[torch.Tensor, tuple[int, ...], float], block: int, threshold: float
) -> None:
    maps, class_of, scale = problem
    ours = decode(in_blocks(maps, block), class_of, scale)
    plain = decoded_plainly(maps.numpy(), class_of, scale)
    np.testing.assert_allclose(ours.probability.numpy(), plain.names.max(axis=0), atol=1e-5)
    np.testing.assert_allclose(ours.score.numpy(), plain.classes.max(axis=0), atol=1e-5)
    close = np.abs(plain.names.max(axis=0) - threshold) < 1e-5
    ranked = np.sort(plain.names, axis=0)
    if len(ranked) > 1:
        close |= ranked[-1] - ranked[-2] < 1e-6
        np.testing.assert_allclose(ours.margin.numpy(), ranked[-1] - ranked[-2], atol=1e-5)
    labels = ours.thresholded(threshold).numpy()
    np.testing.assert_array_equal(labels[~close], plain.labels(threshold)[~close])


@settings(max_examples=40, deadline=None)
@given(problems())
def test_probabilities_on_request_match_the_softmax_and_the_labels(
    problem: tuple[torch.Tensor, tuple[int, ...], float],
) -> None:
    maps, class_of, scale = problem
    scores = score_maps(maps, class_of, scale)
    decoded = scores.decode()
    plain = decoded_plainly(maps.numpy(), class_of, scale)
    labels = range(max(class_of) + 1)
    ours = scores.probabilities(labels, decoded.log_classes).numpy()
    np.testing.assert_allclose(ours, plain.classes, atol=1e-5)
    np.testing.assert_allclose(ours.sum(axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(ours.max(axis=0), decoded.score.numpy(), atol=1e-5)
    some = list({labels[-1]: None, labels[0]: None})
    chosen = scores.probabilities(some, decoded.log_classes).numpy()
    np.testing.assert_allclose(chosen, plain.classes[some], atol=1e-5)


def score_maps(maps: torch.Tensor, class_of: tuple[int, ...], scale: float) -> ScoreMaps:
    """Score maps that pass through stitching unchanged, not refined."""
    height, width = maps.shape[1:]
    stitched = Stitched(maps, torch.eye(height), torch.eye(width))
    return ScoreMaps(stitched, torch.zeros(3, 2, 2), Refinement(False), class_of, scale)


@pytest.mark.parametrize("block", [1, 2, 3, 4])
def test_ties_go_to_the_lower_label_as_argmax_does(block: int) -> None:
    maps = torch.tensor([0.5, 0.7, 0.7, 0.7]).view(4, 1, 1)
    decoded = decode(in_blocks(maps, block), (0, 1, 2, 3), 40.0)
    assert decoded.labels.item() == 1
    assert decoded.margin.item() == 0


def one_pixel(cosines: list[float], class_of: tuple[int, ...], scale: float = 40.0) -> Decoded:
    maps = torch.tensor(cosines).view(-1, 1, 1)
    return decode(in_blocks(maps, 2), class_of, scale)


def test_the_threshold_compares_among_names_and_not_among_classes() -> None:
    """Two synonyms of equal score halve the probability that the threshold sees."""
    decoded = one_pixel([0.2, 0.2, -1.0], (0, 0, 1))
    assert decoded.probability.item() == pytest.approx(0.5)
    assert decoded.score.item() == pytest.approx(1.0)
    assert one_pixel([-1.0, 0.2, 0.2], (0, 1, 1)).thresholded(0.6).item() == 0


def test_a_probability_equal_to_the_threshold_is_kept() -> None:
    decoded = one_pixel([0.1, 0.1, -5.0], (1, 2, 3))
    assert decoded.probability.item() == 0.5
    assert decoded.thresholded(0.5).item() == 1


def test_a_background_without_names_gets_only_what_is_below_the_threshold() -> None:
    maps = torch.tensor([[0.9, 0.1], [0.1, 0.1], [0.1, 0.1]]).view(3, 1, 2)
    scores = score_maps(maps, (1, 2, 3), 40.0)
    decoded = scores.decode()
    assert decoded.thresholded(0.5).tolist() == [[1, 0]]
    assert scores.probabilities([0], decoded.log_classes).tolist() == [[[0.0, 0.0]]]


def test_large_scores_do_not_overflow() -> None:
    decoded = one_pixel([1.0, -1.0, 0.99], (0, 1, 2), scale=10_000.0)
    assert decoded.score.item() == pytest.approx(1.0)
    assert np.isfinite(decoded.log_classes.item())
