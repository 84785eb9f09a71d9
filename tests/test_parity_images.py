"""Stitched logits, refinement and whole benchmarks against the authors' program."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from naclip import images, refine, scoring, vocabulary, windows
from naclip.methods import read_patches
from naclip.pipeline import Segmenter
from naclip.settings import METHODS, PRESETS, Refinement

from .recorded import recorded, recorded_file, recorded_of

LOGITS_WITHIN = 5e-3  # recorded in fp16
MARGIN = 2e-3  # of the best class's probability over the second's
AGREEMENT = 0.999
ONE_NAME_A_CLASS = {"context60", "context59", "coco_stuff", "cityscapes", "ade20k"}
EVERY = {"voc21": 4, "ade20k": 7}  # each how many-th name was recorded


@pytest.mark.parametrize("benchmark", EVERY)
def test_resized_pixels_match_the_program(segmenter: Segmenter, benchmark: str) -> None:
    shape = segmenter.model.shape
    picture = images.load(recorded_file("coffee.png"))
    windowing = PRESETS[benchmark].windowing
    ours = images.prepare(picture, windowing, shape.mean, shape.std, shape.patch)
    answers = recorded_of("logits", benchmark, "coffee")
    np.testing.assert_allclose(ours, answers["pixels"], rtol=0, atol=2e-3)


@pytest.mark.parametrize("benchmark", EVERY)
@torch.inference_mode()
def test_stitched_logits_match_the_program(segmenter: Segmenter, benchmark: str) -> None:
    """From the same pixels, at the resized image's size: before the last resize."""
    answers = recorded_of("logits", benchmark, "coffee")
    shape = segmenter.model.shape
    picture = images.load(recorded_file("coffee.png"))
    windowing = PRESETS[benchmark].windowing
    pixels = torch.from_numpy(
        images.prepare(picture, windowing, shape.mean, shape.std, shape.patch)
    )
    size = (pixels.shape[1], pixels.shape[2])
    plan = windows.plan(size, size, windowing, shape.patch)
    names = torch.from_numpy(recorded_of("text", benchmark)["features"])[:: EVERY[benchmark]]
    tower = segmenter.vision
    trace = tower.trace(windows.cut(pixels, plan))
    patches = read_patches(tower, trace, METHODS["naclip"])
    stitched = windows.stitch(scoring.cosine(patches, names, plan.grid), plan)
    ours = stitched.maps(0, stitched.names).numpy()
    np.testing.assert_allclose(ours, answers["logits"], rtol=0, atol=LOGITS_WITHIN)


@pytest.mark.parametrize(
    ("key", "steps", "dilations"),
    [
        ("steps10_dil8_16", 10, (8, 16)),
        ("steps1_dil1", 1, (1,)),
        ("steps50_dil1_2_4_8_12_24", 50, (1, 2, 4, 8, 12, 24)),
    ],
)
def test_refinement_matches_pamr(key: str, steps: int, dilations: tuple[int, ...]) -> None:
    answers = {k: torch.from_numpy(v) for k, v in recorded("pamr.npz").items()}
    weights = refine.affinity(answers["image"], dilations)
    ours = refine.refine(answers["logits"], weights, Refinement(True, steps, dilations))
    torch.testing.assert_close(ours, answers[key], rtol=0, atol=2e-5)


@pytest.mark.parametrize("refined", [True, False], ids=["refined", "raw"])
@pytest.mark.parametrize("image", ["chelsea", "coffee"])
@pytest.mark.parametrize("preset", PRESETS)
def test_labels_match_the_program(
    segmenter: Segmenter, preset: str, image: str, refined: bool
) -> None:
    answers = recorded_of("e2e", preset, image)
    kind = "pamr" if refined else "raw"
    ours = segmenter(
        recorded_file(f"{image}.png"),
        vocabulary.load(preset),
        settings=PRESETS[preset],
        refine=refined,
    )
    assert ours.report.refined is refined
    theirs, margin = answers[f"labels_{kind}"], answers[f"margin_{kind}"].astype(np.float32)
    assert ours.labels.shape == theirs.shape
    differs = ours.labels != theirs
    assert not differs[margin > MARGIN].any()
    assert 1 - differs.mean() >= AGREEMENT
    if preset in ONE_NAME_A_CLASS:  # so probabilities over names and over classes are the same
        top = answers[f"top_{kind}"].astype(np.float32)
        np.testing.assert_allclose(ours.scores, top, rtol=0, atol=5e-3)


@pytest.mark.parametrize("threshold", [0.35, 0.5])
def test_threshold_labels_background_where_the_programs_probability_is_below_it(
    segmenter: Segmenter, threshold: float
) -> None:
    """At the benchmarks' own 0.1 no pixel of the recorded images is below."""
    answers = recorded_of("e2e", "context60", "chelsea")
    top = answers["top_raw"].astype(np.float32)
    ours = segmenter(
        recorded_file("chelsea.png"),
        vocabulary.load("context60"),
        settings=PRESETS["context60"],
        refine=False,
        threshold=threshold,
    )
    below, above = top < threshold - 5e-3, top > threshold + 5e-3
    assert below.mean() > 0.01
    assert above.mean() > 0.01
    assert (ours.labels[below] == 0).all()
    same = ours.labels[above] == answers["labels_raw"][above]
    assert same.mean() >= AGREEMENT
