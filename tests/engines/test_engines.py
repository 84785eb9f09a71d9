"""Every engine against the eager tower, and what is said when one cannot be had."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from naclip import engines, vocabulary
from naclip.clip.model import ClipModel, open_model
from naclip.clip.transformer import linear
from naclip.engines import graph as graphs
from naclip.engines import openvino as backend
from naclip.engines.compile import Compiled
from naclip.errors import MissingExtraError, SettingsError
from naclip.pipeline import Segmenter, load
from naclip.settings import PRESETS

from ..recorded import recorded_file, recorded_of

CPU = torch.device("cpu")
needs_openvino = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason="extra openvino is not installed"
)
needs_nncf = pytest.mark.skipif(
    importlib.util.find_spec("nncf") is None, reason="extra openvino is not installed"
)


@pytest.fixture(scope="module")
def model() -> ClipModel:
    return open_model(recorded_file("tiny-clip.safetensors"))


def pixels(batch: int, height: int, width: int) -> torch.Tensor:
    return torch.randn(batch, 3, height, width, generator=torch.Generator().manual_seed(1))


def openvino(model: ClipModel, precision: str = "fp32") -> backend.OpenVino:
    return backend.OpenVino(model.vision, precision, model.fingerprint)


@needs_openvino
@pytest.mark.parametrize("last", [1, 2, 3, 6])
@torch.inference_mode()
def test_openvino_traces_what_the_tower_traces(model: ClipModel, last: int) -> None:
    engine = openvino(model)
    for shape in [(1, 224, 224), (3, 64, 96), (2, 112, 448)]:
        ours, eager = engine.trace(pixels(*shape), last), model.vision.trace(pixels(*shape), last)
        assert ours.grid == eager.grid
        assert len(ours.inputs) == len(eager.inputs)
        for mine, reference in zip(ours.inputs, eager.inputs, strict=True):
            torch.testing.assert_close(mine, reference, atol=2e-5, rtol=1e-5)


@needs_openvino
@torch.inference_mode()
def test_openvino_has_both_activations(model: ClipModel) -> None:
    exact = open_model(recorded_file("tiny-clip.safetensors"), activation="gelu")
    ours = openvino(exact).trace(pixels(1, 64, 64), 1).inputs[0]
    reference = exact.vision.trace(pixels(1, 64, 64), 1).inputs[0]
    torch.testing.assert_close(ours, reference, atol=2e-5, rtol=1e-5)
    assert (ours - model.vision.trace(pixels(1, 64, 64), 1).inputs[0]).abs().max() > 1e-3


@needs_openvino
@pytest.mark.parametrize("preset", ["voc21", "ade20k", "cityscapes"])
def test_openvino_labels_match_the_program(preset: str) -> None:
    segment = load(recorded_file("tiny-clip.safetensors"), engine="openvino", device="cpu")
    answers = recorded_of("e2e", preset, "coffee")
    ours = segment(
        recorded_file("coffee.png"), vocabulary.load(preset), settings=PRESETS[preset], refine=False
    )
    assert (ours.report.engine, ours.report.precision) == ("openvino", "fp32")
    differs = ours.labels != answers["labels_raw"]
    assert not differs[answers["margin_raw"].astype(np.float32) > 2e-3].any()
    assert differs.mean() <= 0.001


@needs_openvino
@torch.inference_mode()
def test_bf16_is_near_and_said(model: ClipModel) -> None:
    segment = load(
        recorded_file("tiny-clip.safetensors"), engine="openvino", precision="bf16", device="cpu"
    )
    exact = model.vision.trace(pixels(2, 96, 96), 1).inputs[0]
    ours = segment.engine.trace(pixels(2, 96, 96), 1).inputs[0]
    assert ours.dtype == torch.float32
    assert ((ours - exact).norm() / exact.norm()) < 0.02
    report = segment(recorded_file("coffee.png"), ["cup", "table"], refine=False).report
    assert (report.engine, report.precision) == ("openvino", "bf16")


@needs_openvino
@needs_nncf
@torch.inference_mode()
def test_int8_takes_its_ranges_from_the_users_images(
    model: ClipModel, fresh_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine = backend.OpenVino(model.vision, "int8", model.fingerprint, [pixels(2, 64, 64)])
    ours, exact = (each.trace(pixels(1, 64, 64), 1).inputs[0] for each in (engine, model.vision))
    difference = (ours - exact).norm() / exact.norm()
    assert 1e-4 < difference < 0.1  # it is int8, and of use
    output = capfd.readouterr()
    assert output.out == ""
    assert "calibrating int8 on 2 windows" in output.err


@needs_openvino
@torch.inference_mode()
def test_a_second_start_takes_the_compiled_model_from_disk(
    model: ClipModel, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = openvino(model).trace(pixels(1, 64, 64), 1).inputs[0]
    blobs = list((fresh_cache / "openvino").iterdir())
    assert [blob.suffix for blob in blobs] == [".blob"]
    monkeypatch.setattr(graphs, "graph", _never)
    again = openvino(model).trace(pixels(1, 64, 64), 1).inputs[0]
    torch.testing.assert_close(again, first, atol=0, rtol=0)
    for other in (
        lambda: openvino(model, "bf16").trace(pixels(1, 64, 64), 1),
        lambda: openvino(model).trace(pixels(1, 64, 64), 2),
        lambda: backend.OpenVino(model.vision, "fp32", "other").trace(pixels(1, 64, 64), 1),
    ):
        with pytest.raises(AssertionError, match="built"):
            other()


def _never(*_: object) -> None:
    raise AssertionError("built")


@needs_openvino
@torch.inference_mode()
def test_a_damaged_or_unwritable_cache_costs_time_and_never_a_result(
    model: ClipModel, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = openvino(model).trace(pixels(1, 64, 64), 1).inputs[0]
    for blob in (fresh_cache / "openvino").iterdir():
        blob.write_bytes(b"not a model")
    again = openvino(model).trace(pixels(1, 64, 64), 1).inputs[0]
    (tmp_path / "file").touch()
    monkeypatch.setenv("NACLIP_CACHE", str(tmp_path / "file"))
    uncached = openvino(model).trace(pixels(1, 64, 64), 1).inputs[0]
    torch.testing.assert_close(again, first, atol=0, rtol=0)
    torch.testing.assert_close(uncached, first, atol=0, rtol=0)


@needs_openvino
@torch.inference_mode()
def test_compiled_models_on_disk_are_bounded(
    model: ClipModel, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openvino(model).trace(pixels(1, 64, 64), 1)
    (old,) = (fresh_cache / "openvino").iterdir()
    monkeypatch.setattr(backend, "MAX_BYTES", int(old.stat().st_size * 1.5))
    openvino(model, "bf16").trace(pixels(1, 64, 64), 1)
    left = list((fresh_cache / "openvino").iterdir())
    assert len(left) == 1
    assert left != [old]


def test_without_the_extra_the_error_names_the_line_that_installs_it(
    model: ClipModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'naclip\[openvino\]'"):
        openvino(model)


def test_without_a_compiler_the_error_says_what_to_do(
    model: ClipModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import cpp_builder, exc

    def none_here() -> str:
        raise exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none_here)
    with pytest.raises(MissingExtraError, match=r"install g\+\+ or clang\+\+, or use engine torch"):
        Compiled(model.vision)


@torch.inference_mode()
def test_compile_traces_what_the_tower_traces(model: ClipModel) -> None:
    try:
        engine = Compiled(model.vision)
    except MissingExtraError:
        pytest.skip("no C++ compiler")
    ours, eager = engine.trace(pixels(2, 64, 64), 2), model.vision.trace(pixels(2, 64, 64), 2)
    assert len(ours.inputs) == 2
    for mine, reference in zip(ours.inputs, eager.inputs, strict=True):
        torch.testing.assert_close(mine, reference, atol=2e-5, rtol=1e-5)


def test_engines_and_precisions_that_do_not_go_together_are_refused(model: ClipModel) -> None:
    def choose(engine: str, precision: str, device: str = "cpu") -> str:
        return engines.choose(engine, precision, torch.device(device), model.vision)  # type: ignore[arg-type]

    with pytest.raises(SettingsError, match="did you mean 'openvino'"):
        choose("openvin", "fp32")
    with pytest.raises(SettingsError, match=r"engine torch has no precision int8.*engine openvino"):
        choose("torch", "int8")
    with pytest.raises(SettingsError, match="engine openvino has no precision fp16"):
        choose("openvino", "fp16")
    with pytest.raises(SettingsError, match="runs on the CPU, not on cuda"):
        choose("openvino", "fp32", "cuda")
    assert choose("auto", "int8") == "openvino"
    assert choose("auto", "fp32", "cuda") == "torch"
    assert choose("auto", "fp16", "cuda") == "torch"
    assert choose("auto", "fp32") == "torch"  # a tiny tower is not worth loading OpenVINO for


@needs_openvino
def test_auto_takes_openvino_for_a_large_tower(
    model: ClipModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "WORTH_LOADING", 1000)
    assert engines.choose("auto", "fp32", CPU, model.vision) == "openvino"
    assert engines.choose("auto", "bf16", CPU, model.vision) == "openvino"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert engines.choose("auto", "fp32", CPU, model.vision) == "torch"


def test_the_default_of_a_small_model_is_torch(segmenter: Segmenter) -> None:
    report = segmenter(recorded_file("coffee.png"), ["cup", "table"], refine=False).report
    assert (report.engine, report.precision) == ("torch", "fp32")


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_linear_equals_torchs(rows: int) -> None:
    x, weight, bias = torch.randn(2, rows, 48), torch.randn(96, 48), torch.randn(96)
    with torch.inference_mode():
        ours = linear(x, weight, bias)
    torch.testing.assert_close(ours, F.linear(x, weight, bias), atol=1e-5, rtol=1e-5)


def test_linear_has_a_gradient_where_one_is_asked_for() -> None:
    weight = torch.randn(4, 3, requires_grad=True)
    linear(torch.randn(2, 3), weight, torch.zeros(4)).sum().backward()
    assert weight.grad is not None
