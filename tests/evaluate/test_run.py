"""Runs: equal to the plain pipeline, resumable after kill -9, one tower pass for many jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naclip.clip.vision import VisionTower
from naclip.errors import DataError, ImageError, OutputError, UsageError
from naclip.evaluate import evaluation, tables
from naclip.evaluate.datasets import DataSet, open_benchmark
from naclip.evaluate.jobs import Job
from naclip.evaluate.metric import Sparse
from naclip.evaluate.report import read_json
from naclip.evaluate.run import Options, run
from naclip.pipeline import Segmenter
from tests.recorded import recorded_file

from .layouts import make_voc, write_image

QUICK = {"short_side": 64, "refine_steps": 1}
PLAIN = ("{}",)  # one prompt a name


class Silent:
    def begin(self, jobs: Sequence[Job], images: int, known: int) -> None:
        pass

    def step(self, entries: Mapping[str, Sparse]) -> None:
        pass


def voc(root: Path, count: int = 3) -> Path:
    random = np.random.default_rng(5)
    masks = {
        f"2007_{i:06d}": random.choice([0, 3, 8, 15, 255], (30 + i, 40)).astype(np.uint8)
        for i in range(count)
    }
    return make_voc(root / "VOC2012", masks)


def opened(root: Path, name: str = "voc21") -> DataSet:
    return open_benchmark(name, root)


def quick(root: Path, name: str = "voc21") -> DataSet:
    """The same with settings that cost little."""
    data = open_benchmark(name, root)
    return replace(data, settings=data.settings.updated(**QUICK))


def evaluate(
    segmenter: Segmenter, data: DataSet, target: Path | None = None, **options: Any
) -> dict[str, Any]:
    given = Options(prompts=PLAIN, **options)
    settings = data.settings.updated(**QUICK)
    return evaluation.evaluate(segmenter, data, settings, given, Silent(), target=target)


def test_confusion_equals_counting_the_plain_pipelines_labels(
    segmenter: Segmenter, tmp_path: Path
) -> None:
    data = opened(voc(tmp_path))
    made = evaluate(segmenter, data, tmp_path / "a.json")
    expected = np.zeros((21, 21), int)
    for sample in data.samples:
        settings = data.settings.updated(**QUICK)
        path = tmp_path / "VOC2012/JPEGImages" / f"{sample.name}.jpg"
        result = segmenter(path, data.words, settings=settings, templates=PLAIN)
        for truth, label in zip(sample.truth().ravel(), result.labels.ravel(), strict=True):
            if truth != 65535:
                expected[truth, label] += 1
    assert made["confusion"] == expected.tolist()
    assert read_json(tmp_path / "a.json")["confusion"] == expected.tolist()


def test_masks_are_the_predicted_labels(segmenter: Segmenter, tmp_path: Path) -> None:
    from PIL import Image

    data = opened(voc(tmp_path, 1))
    made = evaluate(segmenter, data, masks=tmp_path / "masks")
    mask = np.asarray(Image.open(tmp_path / "masks/2007_000000.png"))
    truth = data.samples[0].truth()
    hits = sum(int(((mask == truth) & (mask == c)).sum()) for c in range(21))
    assert hits == np.trace(np.array(made["confusion"]))


def without_times(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text())
    del content["times"]
    del content["versions"]["git_commit"]  # somebody may commit while the test runs
    return content


SLOW_RUN = """
import sys, time
from naclip.evaluate import run
from naclip.cli.main import app
plain = run.predict
def slow(*arguments):
    time.sleep(0.2)
    yield from plain(*arguments)
run.predict = slow
app(sys.argv[1:])
"""


def test_kill_9_and_resume_end_in_the_json_of_an_undisturbed_run(
    segmenter: Segmenter, tmp_path: Path
) -> None:
    """A real process, killed while it works, then another that goes on."""
    data = opened(voc(tmp_path, 8))
    whole, broken = tmp_path / "whole/a.json", tmp_path / "broken/a.json"
    for target in (whole, broken):
        target.parent.mkdir()
    settings = data.settings.updated(short_side=64, refine=False)
    evaluation.evaluate(segmenter, data, settings, Options(prompts=PLAIN), Silent(), target=whole)
    arguments = ["evaluate", "voc21", "--data", str(tmp_path), "--templates", "plain"]
    arguments += ["--no-refine", "--short-side", "64", "--json", str(broken), "--device", "cpu"]
    arguments += ["--model", str(recorded_file("tiny-clip.safetensors"))]
    command = [sys.executable, "-c", SLOW_RUN, *arguments]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300  # on a busy machine the imports alone take long
    while sum(len(p.read_bytes().splitlines()) for p in broken.parent.glob("*.jsonl")) < 4:
        assert process.poll() is None, "ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not broken.exists()
    record = next(broken.parent.glob("*.jsonl"))
    kept = len(record.read_bytes().splitlines()) - 1
    assert 3 <= kept < 8
    with record.open("ab") as file:  # what a crash in the middle of a line leaves
        file.write(b'{"image": "2007_00')

    resumed = subprocess.run([*command, "--resume"], check=True, capture_output=True, text=True)
    assert f"{kept} of 8 images are known" in resumed.stderr
    assert without_times(broken) == without_times(whole)
    assert not list(broken.parent.glob("*.jsonl"))


def test_an_unreadable_image_stops_with_its_name_and_resume_repeats_nothing(
    segmenter: Segmenter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = voc(tmp_path)
    bad = root / "JPEGImages/2007_000001.jpg"
    sound = bad.read_bytes()
    bad.write_bytes(sound[:100])
    target = tmp_path / "a.json"
    with pytest.raises(ImageError, match="2007_000001"):
        evaluate(segmenter, opened(root), target)
    with pytest.raises(UsageError, match=r"keeps 1 images .*--resume"):
        evaluate(segmenter, opened(root), target)
    bad.write_bytes(sound)
    passes = count_traces(monkeypatch)
    evaluate(segmenter, opened(root), target, resume=True)
    assert len(passes) == 2  # of three images


def test_skipped_images_are_listed_with_the_reason(segmenter: Segmenter, tmp_path: Path) -> None:
    root = voc(tmp_path)
    (root / "JPEGImages/2007_000001.jpg").write_bytes(b"no image")
    made = evaluate(segmenter, opened(root), tmp_path / "a.json", skip_errors=True)
    assert list(made["skipped"]) == ["2007_000001"]
    assert "not an image" in made["skipped"]["2007_000001"]
    assert made["data"]["images"] == 2


def test_results_that_cannot_be_written_stop_before_the_first_image(
    segmenter: Segmenter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = opened(voc(tmp_path, 1))
    (tmp_path / "file").write_text("")
    passes = count_traces(monkeypatch)
    with pytest.raises(OutputError, match="file: cannot be made"):
        evaluate(segmenter, data, masks=tmp_path / "file")
    with pytest.raises(OutputError, match="is a folder: expected the name of a JSON file"):
        evaluate(segmenter, data, tmp_path)
    assert not passes


def test_a_mask_of_another_size_is_an_error(segmenter: Segmenter, tmp_path: Path) -> None:
    root = voc(tmp_path, 1)
    write_image(root / "JPEGImages/2007_000000.jpg", 31, 40)
    with pytest.raises(DataError, match="is 40x31, but its mask in voc21 is 40x30"):
        evaluate(segmenter, opened(root), tmp_path / "a.json")


def count_traces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every pass through the frozen blocks, by its number of windows."""
    passes: list[int] = []
    plain = VisionTower.trace

    def counted(self: VisionTower, pixels: Any, last: int = 1) -> Any:
        passes.append(len(pixels))
        return plain(self, pixels, last)

    monkeypatch.setattr(VisionTower, "trace", counted)
    return passes


def test_table_main_runs_the_frozen_blocks_once_an_image_for_all_rows_of_both_voc_benchmarks(
    segmenter: Segmenter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = voc(tmp_path, 2)
    data = {name: quick(root, name) for name in ("voc21", "voc20")}
    rows = [row for row in tables.rows_of("main", None, False, ()) if row.method]
    jobs = tables.jobs_of(rows, data, blocks=3)
    assert len(jobs) == 2 * 8  # six methods raw, two of them refined, on two benchmarks
    passes = count_traces(monkeypatch)
    finished = run(segmenter, jobs, tmp_path, Options(prompts=PLAIN), Silent())
    assert passes == [1, 1]  # two images, the whole of each at once
    assert len(finished.results) == len(jobs)


def test_shared_rows_equal_rows_that_run_alone(segmenter: Segmenter, tmp_path: Path) -> None:
    data = {"voc21": quick(voc(tmp_path, 1))}
    rows = [row for row in tables.rows_of("main", None, False, ()) if row.method]
    jobs = tables.jobs_of(rows, data, blocks=3)
    together = run(segmenter, jobs, tmp_path / "a", Options(prompts=PLAIN), Silent()).results
    for job in jobs:
        alone = run(segmenter, [job], tmp_path / "b", Options(prompts=PLAIN), Silent())
        for name, entries in alone.results[job.key].images.items():
            assert entries.tolist() == together[job.key].images[name].tolist(), job.key


def test_a_background_of_thresholds_and_names_come_from_the_same_pass(
    segmenter: Segmenter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = opened(voc(tmp_path, 2))
    passes = count_traces(monkeypatch)
    made = evaluation.evaluate(
        segmenter,
        data,
        data.settings.updated(**QUICK),
        Options(prompts=PLAIN),
        Silent(),
        analyses=["threshold", "names"],
        target=tmp_path / "a.json",
    )
    assert len(passes) == 2
    curve = {p["threshold"]: p["miou"] for p in made["analysis"]["threshold"]["curve"]}
    assert curve[0.1] == made["result"]["miou"]  # the benchmark's own threshold
    assert set(made["analysis"]["names"]) == {
        "without synonyms",
        "without background names",
        "without either",
    }
