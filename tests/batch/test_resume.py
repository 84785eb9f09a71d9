"""Kill -9 at any moment; the same command goes on, and the bytes are those of a clean run."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from naclip.bulk.run import LocalMachine
from naclip.errors import DataError, UsageError

from .jobs import batch, command, contents, draw, environment, run

EVERYTHING = ("--overlays", "--table", "--chunk", "4")
OPTIONS: dict[str, Any] = {"overlays": True, "table": True, "chunk": 4}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("in"), 60)


@pytest.fixture(scope="module")
def clean(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("clean")
    done = run(source, output, *EVERYTHING)
    assert done.returncode == 0, done.stderr
    assert "60/60" in done.stderr
    assert re.search(r"\d+\.\d images/s +0 failed", done.stderr)
    return output


def recorded(output: Path) -> int:
    path = output / ".naclip/record.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_killed_five_times_equals_a_clean_run(source: Path, clean: Path, tmp_path: Path) -> None:
    rng = random.Random(6)
    progress = []
    for _ in range(5):
        before = recorded(tmp_path)
        process = subprocess.Popen(
            command(source, tmp_path, *EVERYTHING), env=environment(), stderr=subprocess.DEVNULL
        )
        while recorded(tmp_path) == before and process.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        assert process.poll() is None, "finished before it was killed: use more images"
        process.kill()
        process.wait()
        progress.append(recorded(tmp_path))
    assert progress == sorted(set(progress)), "each start goes on from what was done"
    done = run(source, tmp_path, *EVERYTHING)
    assert done.returncode == 0, done.stderr
    assert len(contents(clean)) == 60 * 2 + 3  # masks, overlays; table, run.json, failures.json
    assert contents(tmp_path) == contents(clean)


def test_a_finished_run_is_not_repeated(source: Path, clean: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (clean / "masks").rglob("*.png")}
    assert batch(source, clean, **OPTIONS).before == 60
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_number_of_threads_does_not_matter(source: Path, clean: Path, tmp_path: Path) -> None:
    batch(source, tmp_path, **OPTIONS, machines=LocalMachine(readers=1, writers=4))
    assert contents(tmp_path) == contents(clean)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"sigma": 3}, "settings.sigma: 1.0 then, 3.0 now"),
        ({"chunk": 5}, "chunk: 4 then, 5 now"),
        ({"templates": ["{}"]}, "templates: "),
        ({"table": False}, "outputs.table: true then, false now"),
        ({"background": ["sky"]}, 'classes: ["car", "house", "tree"] then, ["background", "car"'),
    ],
)
def test_other_settings_are_refused_with_the_difference(
    source: Path, clean: Path, change: dict[str, Any], difference: str
) -> None:
    before = contents(clean)
    with pytest.raises(UsageError, match=r"name another output, or --overwrite") as error:
        batch(source, clean, **(OPTIONS | change))
    assert difference in str(error.value)
    assert contents(clean) == before


def test_overwrite_begins_anew(source: Path, tmp_path: Path) -> None:
    batch(source / "even", tmp_path, overlays=True)
    batch(source / "odd", tmp_path, overwrite=True)
    assert json.loads((tmp_path / "run.json").read_text())["images"] == 30
    assert not (tmp_path / "overlays").exists()
    assert len(list((tmp_path / "masks").rglob("*.png"))) == 30


def test_two_processes_on_one_output_are_detected(source: Path, tmp_path: Path) -> None:
    first = subprocess.Popen(
        command(source, tmp_path), env=environment(), stderr=subprocess.DEVNULL
    )
    try:
        while not (tmp_path / "run.json").exists():
            assert first.poll() is None
            time.sleep(0.005)
        first.send_signal(19)  # SIGSTOP: it holds its lock while the second one tries
        second = run(source, tmp_path)
    finally:
        first.kill()
        first.wait()
    assert second.returncode == 2
    assert f"another process is at work on it (process {first.pid}" in second.stderr
    assert len(second.stderr.splitlines()) == 1, "no bar of a run that did not begin"


def test_a_folder_with_other_files_is_not_written_to(source: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("do not lose me")
    with pytest.raises(UsageError, match=r"holds other files \(thesis.tex\)"):
        batch(source, tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").exists()


def test_images_that_came_later_are_named_and_left_out(tmp_path: Path) -> None:
    source, output = draw(tmp_path / "in", 4), tmp_path / "out"
    batch(source, output)
    draw(source, 6)
    done = run(source, output)
    assert done.returncode == 0
    assert "2 images are new since the run began (even/004.jpg, ...)" in done.stderr
    assert len(list((output / "masks").rglob("*.png"))) == 4


def test_a_line_cut_by_a_crash_is_done_again(source: Path, clean: Path, tmp_path: Path) -> None:
    batch(source, tmp_path, **OPTIONS)
    record = tmp_path / ".naclip/record.jsonl"
    record.write_bytes(record.read_bytes()[:-9])
    (tmp_path / "masks/even/.0123456789abcdef.tmp").write_bytes(b"half")
    assert batch(source, tmp_path, **OPTIONS).before == 56
    assert record.read_bytes().count(b"\n") == 15
    assert contents(tmp_path) == contents(clean)


def test_a_damaged_record_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    source, output = draw(tmp_path / "in", 2), tmp_path / "out"
    batch(source, output)
    (output / ".naclip/record.jsonl").write_bytes(b"nonsense\n")
    with pytest.raises(DataError, match="line 1 is damaged: --overwrite begins anew"):
        batch(source, output)
