"""The stages together: what a call gives, and what impossible calls say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import naclip
from naclip import images, vocabulary
from naclip.clip.model import open_model
from naclip.errors import (
    CheckpointError,
    ImageError,
    NaclipError,
    OutOfMemoryError,
    SettingsError,
    VocabularyError,
)
from naclip.pipeline import Segmenter
from naclip.settings import METHODS, Settings

from .recorded import recorded_file

WORDS = ["cat", "sofa=couch,settee", "sky"]


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def refusal(kind: type[NaclipError], call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("size", [(1, 1), (1, 6), (5, 3), (15, 15), (16, 300), (300, 60)])
def test_small_and_narrow_images_get_labels_of_their_own_size(
    segmenter: Segmenter, size: tuple[int, int]
) -> None:
    result = segmenter(picture(*size), WORDS)
    assert result.size == result.labels.shape == result.scores.shape == size
    assert np.isfinite(result.scores).all()
    assert result.scores.min() >= 1 / 3 - 1e-6
    assert result.scores.max() <= 1 + 1e-6


def test_an_image_too_narrow_for_a_patch_says_what_to_do(segmenter: Segmenter) -> None:
    text = refusal(ImageError, segmenter, picture(3, 2000), WORDS)
    assert "array is 2000x3 and would be resized to 2048x3, narrower than one patch of 16" in text
    assert segmenter(picture(3, 2000), WORDS, long_side=20_000, short_side=16).size == (3, 2000)


def test_a_window_below_a_patch_is_refused(segmenter: Segmenter) -> None:
    text = refusal(SettingsError, segmenter, picture(20, 20), WORDS, window=8, stride=8)
    assert text == "window 8 is smaller than a patch of the model: use at least 16"


@settings(max_examples=12, deadline=None)
@given(
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.sampled_from(["naclip", "clip", "maskclip", "neighbours-scaled"]),
    st.booleans(),
    st.sampled_from([0.0, 0.4]),
)
def test_probabilities_agree_with_labels_and_scores(
    segmenter: Segmenter, size: tuple[int, int], method: str, refined: bool, threshold: float
) -> None:
    options = {"method": method, "refine": refined, "threshold": threshold, "short_side": 64}
    result = segmenter(picture(*size), WORDS, **options)
    every = result.probabilities()
    assert every.shape == (len(result.classes), *size)
    np.testing.assert_allclose(every.sum(axis=0), 1, atol=1e-4)
    np.testing.assert_allclose(every.max(axis=0), result.scores, atol=1e-4)
    ranked = np.sort(every, axis=0)
    sure = (ranked[-1] - ranked[-2] > 1e-3) & (result.labels > 0 if threshold else True)
    np.testing.assert_array_equal(every.argmax(axis=0)[sure], result.labels[sure])
    for index, name in enumerate(result.classes):
        np.testing.assert_allclose(result.heatmap(name), every[index], atol=1e-5)


def test_asking_for_probabilities_changes_nothing(segmenter: Segmenter) -> None:
    result = segmenter(picture(20, 30), WORDS)
    labels, scores = result.labels.copy(), result.scores.copy()
    first = result.probabilities()
    first[:] = -1
    assert result.probabilities().min() >= 0
    np.testing.assert_array_equal(result.labels, labels)
    np.testing.assert_array_equal(result.scores, scores)


def test_from_256_classes_on_labels_have_16_bits(segmenter: Segmenter) -> None:
    words = [f"thing {number}" for number in range(300)]
    result = segmenter(picture(20, 20), words, templates=["{}"], refine=False)
    assert result.labels.dtype == np.uint16
    few = segmenter(picture(20, 20), words[:255], templates=["{}"], refine=False)
    assert few.labels.dtype == np.uint8


def test_the_same_call_twice_gives_the_same(segmenter: Segmenter) -> None:
    one, two = (segmenter(picture(40, 50), WORDS) for _ in range(2))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.scores, two.scores)


def test_the_order_of_classes_does_not_change_where_they_are(segmenter: Segmenter) -> None:
    one = segmenter(picture(40, 50), WORDS, refine=False)
    two = segmenter(picture(40, 50), WORDS[::-1], refine=False)
    np.testing.assert_allclose(one.heatmap("sofa"), two.heatmap("sofa"), atol=1e-5)


def test_every_method_runs_and_is_reported(segmenter: Segmenter) -> None:
    for name in METHODS:
        options = {"depth": 3} if METHODS[name].block == "dual" else {}
        result = segmenter(picture(32, 40), WORDS, method=name, short_side=64, **options)
        assert result.report.settings["method"] == name
        assert np.isfinite(result.scores).all()
    assert segmenter(picture(32, 40), WORDS, scoring="surgery").report.refined


def test_the_report_says_what_was_done(segmenter: Segmenter) -> None:
    rgba = np.dstack([picture(300, 451), np.full((300, 451), 128, np.uint8)])
    report = segmenter(rgba, WORDS, whole=True, refine=False, sigma=2).report
    assert report.model == "tiny-clip.safetensors"
    assert (report.windows, report.resized, report.refined) == (1, (336, 505), False)
    assert (report.precision, report.device) == ("fp32", "cpu")
    assert report.settings["sigma"] == 2.0
    assert report.notes == ("transparent parts over white",)
    assert all(seconds >= 0 for seconds in report.seconds.values())
    assert segmenter(picture(336, 505), WORDS).report.windows == 2 * 4


def test_settings_of_a_call_do_not_stay(segmenter: Segmenter) -> None:
    segmenter(picture(20, 20), WORDS, sigma=1, refine=False, short_side=64)
    assert segmenter(picture(20, 20), WORDS).report.settings == Settings().flat()


def test_unusable_words_are_refused_before_the_image_is_read(segmenter: Segmenter) -> None:
    assert "no classes" in refusal(VocabularyError, segmenter, "nowhere.png", [])
    assert "only one name" in refusal(VocabularyError, segmenter, "nowhere.png", ["cat"])
    assert "no setting" in refusal(SettingsError, segmenter, "nowhere.png", WORDS, thresold=0.1)
    assert "no such file" in refusal(ImageError, segmenter, "nowhere.png", WORDS)


def test_a_name_too_long_for_clip_is_named(segmenter: Segmenter) -> None:
    text = refusal(VocabularyError, segmenter, picture(20, 20), ["cat", "very " * 80 + "long cat"])
    assert "tokens long, CLIP reads 77: use a shorter name or template" in text
    assert len(text) < 200


def test_unusable_templates_are_refused(segmenter: Segmenter) -> None:
    for templates, says in (
        ([], "templates: expected a list of templates, got []"),
        ("a photo of a {}", "templates: expected a list of templates, got 'a photo of a {}'"),
        (["a photo"], "templates: each template must contain {}, got 'a photo'"),
    ):
        call = {"templates": templates}
        assert refusal(VocabularyError, segmenter, picture(20, 20), WORDS, **call) == says


@pytest.mark.parametrize("broken", ["visual.proj", "text_projection"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("refine", [True, False])
def test_weights_that_are_no_numbers_are_refused_and_give_no_labels(
    tmp_path: Path, broken: str, value: float, refine: bool
) -> None:
    tensors = load_file(recorded_file("tiny-clip.safetensors"))
    tensors[broken] = tensors[broken].clone()
    tensors[broken][0, 0] = value
    save_file(tensors, tmp_path / "broken.safetensors")
    broken_one = naclip.load(tmp_path / "broken.safetensors", device="cpu")
    text = refusal(CheckpointError, broken_one, picture(20, 20), WORDS, refine=refine)
    assert text == (
        "broken.safetensors: the model's answers are no numbers (NaN) in fp32: "
        "its weights are damaged or do not fit: get them again"
    )


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"
        ),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("MPS backend out of memory (MPS allocated: 8.00 GB, max allowed: 9.07 GB)"),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_out_of_memory_is_one_line_and_never_a_lesser_result(
    segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(vocabulary, "templates", fail)
    text = refusal(OutOfMemoryError, segmenter, picture(20, 20), WORDS)
    assert text.startswith("array: out of memory: use a smaller image or short_side")


def test_opencvs_out_of_memory_is_the_same_line(segmenter: Segmenter) -> None:
    huge = {"short_side": 30_000_000, "long_side": 30_000_000}
    text = refusal(NaclipError, segmenter, picture(20, 20), WORDS, **huge)
    assert text.startswith("array: out of memory")


def test_other_errors_pass_through_as_they_are(
    segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "templates", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        segmenter(picture(20, 20), WORDS)


def test_two_precisions_of_one_model_do_not_disturb_each_other() -> None:
    model = open_model(recorded_file("tiny-clip.safetensors"))
    exact = Segmenter(model, "cpu", "fp32")
    before = exact(picture(30, 40), WORDS, refine=False)
    rough = Segmenter(model, "cpu", "bf16")(picture(30, 40), WORDS, refine=False)
    after = exact(picture(30, 40), WORDS, refine=False)
    np.testing.assert_array_equal(before.scores, after.scores)
    assert rough.report.precision == "bf16"
    assert (rough.labels == before.labels).mean() > 0.9
    assert not np.array_equal(rough.scores, before.scores)


def test_devices_and_precisions_that_are_not_there_are_refused() -> None:
    path = recorded_file("tiny-clip.safetensors")
    load: Any = naclip.load
    assert "device is 'gpu': use auto, cpu" in refusal(SettingsError, load, path, device="gpu")
    assert "precision is 'fp8': use auto" in refusal(SettingsError, load, path, precision="fp8")
    text = refusal(SettingsError, load, path, device="cpu", precision="fp16")
    assert "precision fp16 is slower than fp32 on a CPU: use bf16 or fp32" in text
    if not torch.cuda.is_available():
        text = refusal(SettingsError, load, path, device="cuda")
        assert text == "device cuda is not available here: use auto or cpu"


def test_a_picture_loaded_before_is_used_as_it_is(segmenter: Segmenter) -> None:
    loaded = images.load(recorded_file("coffee.png"))
    one = segmenter(loaded, WORDS, refine=False)
    two = segmenter(recorded_file("coffee.png"), WORDS, refine=False)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.image, loaded.rgb)
