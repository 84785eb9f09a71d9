"""Patch features of every method against the authors' programs."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import Tensor

from naclip import scoring
from naclip.clip.checkpoint import read_tensors
from naclip.clip.shape import ClipShape, TowerShape
from naclip.clip.vision import VisionTower
from naclip.methods import read_patches
from naclip.pipeline import Segmenter
from naclip.settings import METHODS, Method

from .recorded import recorded, recorded_file

WITHIN = 2e-5
SIZES = ("224x224", "250x375", "336x448")
THEIR_ATTENTION = {  # the program's names of attentions -> similarity, neighbours
    "naclip": ("kk", "gaussian"),
    "kk": ("kk", "off"),
    "vanilla": ("qk", "off"),
    "nonly": ("none", "scaled"),
    "csa": ("qq+kk", "off"),
}
KEYS = [
    "reduced-naclip-5",
    "reduced-naclip-2",
    "vanilla-naclip-5",
    "reduced-kk-0",
    "vanilla-kk-0",
    "reduced-vanilla-0",
    "vanilla-vanilla-0",
    "reduced-nonly-5",
    "vanilla-nonly-5",
    "vanilla-csa-0",
]
THEIR_METHODS = {  # names in methods_224x224.npz -> ours
    "clip": "clip",
    "naclip": "naclip",
    "sclip": "sclip",
    "maskclip-reduced": "maskclip",
    "maskclip-vanilla": "maskclip-vanilla",
    "clearclip": "clearclip",
    "gem": "gem",
    "clip-surgery": "clip-surgery",
}


def method_of(key: str) -> Method:
    block, attention, sigma = key.split("-")
    similarity, neighbours = THEIR_ATTENTION[attention]
    return Method(
        similarity=similarity,  # type: ignore[arg-type]
        neighbours=neighbours,  # type: ignore[arg-type]
        block=block,  # type: ignore[arg-type]
        sigma=float(sigma) or 5.0,
    )


@torch.inference_mode()
def patches_of(tower: VisionTower, pixels: np.ndarray, method: Method) -> Tensor:
    trace = tower.trace(torch.from_numpy(pixels)[None], method.reads)
    return read_patches(tower, trace, method)[0]


@pytest.fixture(scope="module")
def eight_blocks() -> VisionTower:
    """The recorded vision tower of 8 blocks; its file has no text tower."""
    tensors = read_tensors(recorded_file("tiny8-visual.safetensors"))
    tower_shape = TowerShape(width=128, layers=8, heads=2, hidden=512)
    tower = VisionTower(ClipShape(tower_shape, tower_shape, 224, 16, embedding=64))
    mine = {re.sub(r"^visual\.", "", name): tensor.float() for name, tensor in tensors.items()}
    tower.load_state_dict(mine)
    return tower.eval()


@pytest.mark.parametrize("size", SIZES)
def test_recorded_features_are_those_tested_here(size: str) -> None:
    assert set(recorded(f"features_{size}.npz")) == {"pixels", *KEYS}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", SIZES)
def test_features_match_the_program(segmenter: Segmenter, size: str, key: str) -> None:
    answers = recorded(f"features_{size}.npz")
    ours = patches_of(segmenter.vision, answers["pixels"], method_of(key))
    np.testing.assert_allclose(ours.numpy(), answers[key], rtol=0, atol=WITHIN)


@pytest.mark.parametrize("key", KEYS)
def test_112x448_differs_from_the_program_which_forgets_to_interpolate(
    segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """7x28 patches are 196, as many as in training (14x14), and the program goes by the count: it
    leaves the positions of the square on the wide grid. Ours are interpolated to 7x28. With its
    fault put back, ours gives its answer: the positions are the whole difference."""
    answers = recorded("features_112x448.npz")
    tower = segmenter.vision
    right = patches_of(tower, answers["pixels"], method_of(key)).numpy()
    assert np.abs(right - answers[key]).max() > 0.05

    monkeypatch.setattr(VisionTower, "positions", lambda self, grid: self.positional_embedding)
    faulty = patches_of(tower, answers["pixels"], method_of(key)).numpy()
    np.testing.assert_allclose(faulty, answers[key], rtol=0, atol=WITHIN)


@pytest.mark.parametrize(("theirs", "ours"), THEIR_METHODS.items())
def test_methods_match_their_programs(eight_blocks: VisionTower, theirs: str, ours: str) -> None:
    answers = recorded("methods_224x224.npz")
    patches = patches_of(eight_blocks, answers["pixels"], METHODS[ours])
    np.testing.assert_allclose(patches.numpy(), answers[theirs], rtol=0, atol=WITHIN)


@pytest.mark.parametrize(("theirs", "ours"), THEIR_METHODS.items())
def test_one_trace_serves_all_methods_as_it_serves_one(
    eight_blocks: VisionTower, theirs: str, ours: str
) -> None:
    answers = recorded("methods_224x224.npz")
    with torch.inference_mode():
        trace = eight_blocks.trace(torch.from_numpy(answers["pixels"])[None], last=6)
        patches = read_patches(eight_blocks, trace, METHODS[ours])[0]
    np.testing.assert_allclose(patches.numpy(), answers[theirs], rtol=0, atol=WITHIN)


def test_class_token_matches_clip_surgery(eight_blocks: VisionTower) -> None:
    answers = recorded("methods_224x224.npz")
    with torch.inference_mode():
        cls = eight_blocks(torch.from_numpy(answers["pixels"])[None])[0]
    np.testing.assert_allclose(cls.numpy(), answers["clip-surgery-cls"], rtol=0, atol=WITHIN)


def test_surgery_scores_match_clip_surgery() -> None:
    answers = {k: torch.from_numpy(v) for k, v in recorded("methods_224x224.npz").items()}
    scores = scoring.surgery(
        answers["clip-surgery"][None],
        answers["clip-surgery-text"],
        (14, 14),
        answers["clip-surgery-cls"][None],
    )
    ours = scores[0].flatten(1).T  # (patches, names)
    torch.testing.assert_close(ours, answers["clip-surgery-similarity"], rtol=0, atol=WITHIN)
