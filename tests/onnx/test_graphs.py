"""Graphs by onnxruntime against the authors' recorded answers, and against torch."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from naclip import images, vocabulary, windows
from naclip.clip.model import open_model
from naclip.clip.tokens import clip_tokenizer
from naclip.methods import read_patches
from naclip.onnx import check, graphs
from naclip.pipeline import Encoded, Segmenter
from naclip.settings import METHODS, PRESETS

from ..recorded import recorded, recorded_file, recorded_of

MARGIN, AGREEMENT = 2e-3, 0.999  # tests/parity/README.md
FEATURES_WITHIN = 2e-5
WINDOWED = [name for name, settings in PRESETS.items() if not settings.windowing.whole]


def session(folder: Path, graph: str) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(folder / f"{graph}.onnx")


def encoded_by_onnx(
    vision: onnxruntime.InferenceSession, segmenter: Segmenter, image: str, preset: str
) -> Encoded:
    shape, windowing = segmenter.model.shape, PRESETS[preset].windowing
    picture = images.load(recorded_file(f"{image}.png"))
    pixels = torch.from_numpy(
        images.prepare(picture, windowing, shape.mean, shape.std, shape.patch)
    )
    plan = windows.plan(picture.size, tuple(pixels.shape[1:]), windowing, shape.patch)
    (patches,) = vision.run(None, {"pixels": windows.cut(pixels, plan).numpy()})
    return Encoded(torch.from_numpy(patches), None, plan.grid, plan, pixels)


@pytest.mark.parametrize("refined", [False, True], ids=["raw", "refined"])
@pytest.mark.parametrize("image", ["chelsea", "coffee"])
@pytest.mark.parametrize("preset", WINDOWED)
def test_label_maps_from_the_graph_match_the_program(
    recorded_export: Path, segmenter: Segmenter, preset: str, image: str, refined: bool
) -> None:
    vision = session(recorded_export, "vision")
    found = segmenter.name_pixels(
        images.load(recorded_file(f"{image}.png")),
        encoded_by_onnx(vision, segmenter, image, preset),
        vocabulary.load(preset),
        PRESETS[preset].updated(refine=refined),
        text=torch.from_numpy(recorded_of("text", preset)["features"]),
    )
    answers, kind = recorded_of("e2e", preset, image), "pamr" if refined else "raw"
    differs = found.labels != answers[f"labels_{kind}"]
    assert not differs[answers[f"margin_{kind}"].astype(np.float32) > MARGIN].any()
    assert 1 - differs.mean() >= AGREEMENT


@pytest.mark.parametrize("image", ["chelsea", "coffee"])
@pytest.mark.parametrize("preset", WINDOWED)
def test_label_maps_from_the_graph_are_those_of_torch(
    recorded_export: Path, segmenter: Segmenter, preset: str, image: str
) -> None:
    words, chosen = vocabulary.load(preset), PRESETS[preset].updated(refine=False)
    picture = images.load(recorded_file(f"{image}.png"))
    encoded = encoded_by_onnx(session(recorded_export, "vision"), segmenter, image, preset)
    text = segmenter.words(words, vocabulary.templates())
    found = segmenter.name_pixels(picture, encoded, words, chosen, text=text)
    expected = segmenter(picture, words, settings=chosen)
    second, best = np.partition(expected.probabilities(), -2, axis=0)[-2:]
    differs = found.labels != expected.labels
    assert not differs[best - second > MARGIN].any()
    assert 1 - differs.mean() >= AGREEMENT


def test_patch_features_from_the_graph_match_the_program(recorded_export: Path) -> None:
    answers = recorded("features_224x224.npz")
    (found,) = session(recorded_export, "vision").run(None, {"pixels": answers["pixels"][None]})
    expected = answers["reduced-naclip-5"]
    assert np.abs(found.reshape(expected.shape) - expected).max() <= FEATURES_WITHIN


def test_text_features_from_the_graph_match_the_program(recorded_export: Path) -> None:
    answers = recorded_of("text", "cityscapes")
    text, found = session(recorded_export, "text"), []
    for name in answers["names"]:
        prompts = [line.replace("{}", str(name)) for line in vocabulary.templates()]
        (features,) = text.run(None, {"ids": clip_tokenizer().encode(prompts)})
        mean = features.mean(0)
        found.append(mean / np.linalg.norm(mean))
    assert np.abs(np.stack(found) - answers["features"]).max() <= FEATURES_WITHIN


@pytest.mark.parametrize("batch", range(1, 8))
def test_any_number_of_windows_matches_torch(
    recorded_export: Path, segmenter: Segmenter, batch: int
) -> None:
    pixels = torch.randn(batch, 3, 224, 224, generator=torch.Generator().manual_seed(batch))
    (found,) = session(recorded_export, "vision").run(None, {"pixels": pixels.numpy()})
    with torch.inference_mode():
        trace = segmenter.vision.trace(pixels)
        expected = read_patches(segmenter.vision, trace, METHODS["naclip"]).numpy()
    assert found.shape == (batch, 196, 64)
    assert np.abs(found - expected).max() <= FEATURES_WITHIN


@pytest.mark.parametrize("texts", range(1, 8))
def test_any_number_and_length_of_texts_matches_torch(
    recorded_export: Path, segmenter: Segmenter, texts: int
) -> None:
    words = ["cat", "a yellow school bus", "x", "the tail of a cat", "tree", "sky and sea", "dog"]
    ids = clip_tokenizer().encode(words[:texts])[:, : 7 + texts]
    (found,) = session(recorded_export, "text").run(None, {"ids": ids})
    with torch.inference_mode():
        expected = segmenter.model.text(torch.from_numpy(ids)).numpy()
    expected = expected / np.linalg.norm(expected, axis=-1, keepdims=True)
    assert np.abs(found - expected).max() <= FEATURES_WITHIN


OF_EACH_KIND = ["clip", "sclip", "maskclip", "neighbours-scaled", "gem"]  # an export takes seconds


@pytest.mark.parametrize("method", OF_EACH_KIND)
def test_a_method_is_baked_in_as_torch_has_it(method: str) -> None:
    """At another grid than that of training, so that positions are interpolated."""
    model = open_model(recorded_file("tiny-clip.safetensors"))
    chosen = dataclasses.replace(METHODS[method], depth=2, sigma=2.0)
    pixels = torch.randn(3, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    vision = graphs.Vision(model.vision, chosen, side=96)
    graph = graphs.vision_graph(vision, pixels, model)
    plain = model.vision  # a tower that knows nothing of ONNX
    with torch.inference_mode():
        expected = read_patches(plain, plain.trace(pixels, chosen.reads), chosen).numpy()
    found = onnxruntime.InferenceSession(graph).run(None, {"pixels": pixels.numpy()})[0]
    assert np.abs(found - expected).max() <= FEATURES_WITHIN
    assert check.largest_difference(graph, vision, [pixels]) == pytest.approx(
        np.abs(found - expected).max(), abs=2e-6
    )
