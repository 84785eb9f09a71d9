"""The plain program is the same method, and what is measured is told as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from naclip import images, windows
from naclip.bench import accuracy, plain, report, run
from naclip.bench.cases import Case, prepared, random_model, random_picture
from naclip.bench.run import Result, compare
from naclip.bench.suites import Suite, suites
from naclip.cli.bench import bench
from naclip.errors import SettingsError
from naclip.maps import ScoreMaps
from naclip.pipeline import Segmenter
from naclip.settings import PRESETS, Refinement, Windowing

from ..recorded import recorded_file, recorded_of

SMALL = Case("ours", shape="small", height=120, width=170, names=5)


@torch.inference_mode()
def test_the_plain_program_gives_the_recorded_labels(segmenter: Segmenter) -> None:
    answers, text = recorded_of("e2e", "cityscapes", "coffee"), recorded_of("text", "cityscapes")
    picture = images.load(recorded_file("coffee.png"))
    shape, windowing = segmenter.model.shape, PRESETS["cityscapes"].windowing
    pixels = torch.from_numpy(
        images.prepare(picture, windowing, shape.mean, shape.std, shape.patch)
    )
    resized = (pixels.shape[1], pixels.shape[2])
    plan = windows.plan(picture.size, resized, windowing, shape.patch)
    vectors = torch.from_numpy(text["features"].astype(np.float32))
    labels, _ = plain.segment(segmenter.model.vision, pixels, plan, vectors, refine=True)
    differs = labels.numpy() != answers["labels_pamr"]
    assert not differs[answers["margin_pamr"].astype(np.float32) > 2e-3].any()


@torch.inference_mode()
def test_every_part_of_every_comparison_can_run() -> None:
    every = [
        case for suite in suites(quick=True) for case in suite.cases.values() if case.images == 1
    ]
    in_small = {replace(case, height=64, width=80, names=3, tuned=False) for case in every}
    for case in in_small:
        if case.engine == "torch" and case.part != "gemm":
            prepared(case)()


@torch.inference_mode()
def test_ours_and_plain_do_the_same_after_the_transformer() -> None:
    torch.manual_seed(0)
    plan = windows.plan((90, 120), (96, 128), Windowing(window=64, stride=32), 16)
    scores = torch.rand(plan.count, 6, *plan.grid) * 0.3
    pixels = torch.randn(3, 96, 128)
    for refine in (False, True):
        theirs, top = plain.after_transformer(scores.split(1), pixels, plan, 6, refine)
        maps = ScoreMaps(
            windows.stitch(scores, plan), pixels, Refinement(refine), tuple(range(6)), 40.0
        )
        ours = maps.decode()
        np.testing.assert_allclose(ours.probability, top, atol=2e-5)
        assert (ours.labels != theirs).float().mean() <= 0.001


def test_workers_take_turns_and_say_what_they_held() -> None:
    case = replace(SMALL, part="after")
    results = compare({"plain": replace(case, path="plain"), "ours": case}, runs=2)
    for result in results.values():
        assert len(result.seconds) == 2
        assert all(seconds > 0 for seconds in result.seconds)
        assert result.peak >= result.extra >= 0


def test_what_does_not_fit_is_skipped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "available_bytes", lambda device: 10**9)
    large = Case("plain", part="after", height=4000, width=6000, names=150)
    result = compare({"plain": large}, runs=1)["plain"]
    assert result.skipped == "needs 58 GB, 1 GB are free"
    text = "\n".join(report.table(Suite("pixels", "", {"plain": large}), {"plain": result}))
    assert "not run: needs 58 GB" in text


def told(seconds: float, **case: object) -> Result:
    given = replace(SMALL, **case)  # type: ignore[arg-type]
    return Result(given, 0.0, [seconds] * 3, [2 * seconds] * 3, {}, 600_000_000, 5_000_000)


def test_reports_compare_with_the_plain_program_at_the_same_point(tmp_path: Path) -> None:
    cases = {
        "plain, 20 names": told(1.0, path="plain", names=20),
        "ours, 20 names": told(0.01, names=20),
        "ours refined, 20 names": told(0.5, names=20),
        "plain, 40 names": told(3.0, path="plain", names=40),
        "ours, 40 names": told(0.02, names=40),
    }
    suite = Suite("names", "By names", {name: each.case for name, each in cases.items()}, "names")
    report.write(tmp_path, [(suite, cases)], report.machine())
    text = (tmp_path / "bench.md").read_text()
    assert "| ours, 20 names | 10.0 ms | 100.00x | 20.0 ms | 100.00x | 3 | 5 MB | 600 MB |" in text
    assert "| ours, 40 names | 20.0 ms | 150.00x |" in text
    assert "| ours refined, 20 names | 500.0 ms |  |" in text
    data = json.loads((tmp_path / "bench.json").read_text())
    assert data["suites"][0]["results"]["plain, 20 names"]["median"] == 1.0
    assert {"cpu", "threads", "versions", "date"} <= set(data["machine"])


def test_an_unknown_comparison_is_refused() -> None:
    with pytest.raises(SettingsError, match="no comparison 'rwa'; did you mean 'raw'"):
        bench(only=["rwa"], plots=False)


def test_random_models_and_pictures_are_the_same_in_every_process() -> None:
    torch.manual_seed(0)
    one = random_model("small").vision.proj
    torch.manual_seed(0)
    torch.testing.assert_close(one, random_model("small").vision.proj)
    assert random_picture(SMALL).size == (120, 170)


def test_approximate_engines_are_told_beside_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accuracy, "fast_engines", lambda: [("torch", "fp32"), ("torch", "bf16")])
    exact, approximate = accuracy.accuracy(scenes=2)
    assert exact.changed == 0
    assert 0 < approximate.changed < 0.05
    assert abs(approximate.miou - exact.miou) < 0.02
    assert accuracy.table([exact])[-1].startswith("| torch fp32 | 0.000% | ")
