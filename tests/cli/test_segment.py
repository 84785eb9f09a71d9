"""`naclip segment` as people run it: a real process, real files, its exit code and its words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.recorded import recorded_of

from naclip.cli.main import app
from naclip.settings import PRESETS

PARITY = Path(__file__).parents[1] / "parity"
MODEL = str(PARITY / "tiny-clip.safetensors")
CAT = str(PARITY / "chelsea.png")
WORDS = ["-c", "cat", "-c", "sofa=couch,settee"]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "naclip", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        check=False,
        env={**os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1"},
    )


def check_labels(mask: Path, preset: str, kind: str) -> None:
    recorded = recorded_of("e2e", preset, "chelsea")
    wrong = np.asarray(Image.open(mask)) != recorded[f"labels_{kind}"]
    assert wrong.mean() <= 0.001
    assert not (wrong & (recorded[f"margin_{kind}"].astype(np.float32) > 2e-3)).any()


def test_preset_gives_the_recorded_labels(tmp_path: Path) -> None:
    out = tmp_path / "m.png"
    done = run("segment", CAT, "--preset", "ade20k", "--model", MODEL, "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "wrote" in done.stdout
    check_labels(out, "ade20k", "pamr")  # refinement is on by default


@pytest.mark.parametrize("flag", ["--refine", "--no-refine"])
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_gives_the_recorded_labels(tmp_path: Path, preset: str, flag: str) -> None:
    """In this process: 16 starts of Python would take longer than the rest of the suite."""
    out = tmp_path / "m.png"
    arguments = ["segment", CAT, "--preset", preset, "-m", MODEL, "-o", str(out), flag]
    app(arguments, standalone_mode=False)
    check_labels(out, preset, "pamr" if flag == "--refine" else "raw")


def test_json_is_one_object_and_nothing_else() -> None:
    done = run("segment", CAT, *WORDS, "-m", MODEL, "--no-refine", "--json", "--sigma", "3")
    answer = json.loads(done.stdout)
    (image,) = answer["images"]
    assert [c["name"] for c in image["classes"]] == ["cat", "sofa"]
    assert sum(c["coverage"] for c in image["classes"]) == pytest.approx(1, abs=1e-5)
    assert image["report"]["settings"]["sigma"] == 3
    assert image["report"]["refined"] is False
    assert answer["failures"] == []


def test_many_images_go_into_a_folder_and_a_bad_one_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_text("no image")
    coffee = str(PARITY / "coffee.png")
    out = tmp_path / "masks"
    done = run(
        "segment", CAT, str(bad), coffee, *WORDS, "-m", MODEL, "--no-refine", "-o", f"{out}/"
    )
    assert done.returncode == 1
    assert "bad.jpg: not an image" in done.stderr
    assert sorted(p.name for p in out.iterdir()) == ["chelsea.png", "coffee.png"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([CAT, "-m", MODEL], 2, "no classes: name at least one"),
        ([CAT, "-c", "cat", "-m", MODEL], 2, "only one name, 'cat'"),
        ([CAT, *WORDS, "-m", "ViT-B/17"], 2, "did you mean 'ViT-B/16'"),
        ([CAT, *WORDS, "-m", "missing.pt"], 1, "missing.pt: no such file"),
        ([CAT, *WORDS, "--method", "nacilp"], 2, "did you mean 'naclip'"),
        ([CAT, "--preset", "voc"], 2, "no preset 'voc'; did you mean 'voc2"),
        ([CAT, *WORDS, "--stride", "300"], 2, "stride 300 exceeds window 224"),
        ([CAT, *WORDS, "--sigma", "0"], 2, "sigma is 0"),
        ([CAT, *WORDS, "--refine-dilations", "8,x"], 2, "expected integers like 8,16"),
        ([CAT, *WORDS, "-o", "mask.jpg"], 2, "a mask file ends in .png"),
        ([CAT, *WORDS, "-o", "no/such/folder.png"], 1, "does not exist"),
        ([CAT, CAT, *WORDS, "-o", "one.png"], 2, "one file for 2 images"),
        ([CAT, *WORDS, "-o", CAT], 2, "is an input image"),
        ([CAT, *WORDS, "--device", "tpu", "-m", MODEL], 2, "device is 'tpu'"),
        ([CAT, "-c", "cat", "--vocabulary", "voc21"], 2, "choose one"),
        ([CAT, "-c", "cat,", "-c", "dog"], 2, "empty name"),
        ([CAT, "-c", "cat", "--background", CAT], 2, "put the images before it"),
        (["missing.png", *WORDS, "-m", MODEL], 1, "missing.png: no such file"),
    ],
)
def test_misuse_is_one_line_with_its_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    done = run("segment", *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_background_may_stand_alone(tmp_path: Path) -> None:
    out = tmp_path / "m.npz"
    arguments = ["-c", "cat", "--background", "--no-refine", "-m", MODEL, "--scores", str(out)]
    done = run("segment", CAT, *arguments)
    assert done.returncode == 0, done.stderr
    assert np.load(out)["classes"].tolist() == ["background", "cat"]


def test_lists_agree_with_the_tables_of_the_paper() -> None:
    methods = {row["method"] for row in json.loads(run("methods", "--json").stdout)}
    assert {"naclip", "clip", "maskclip", "sclip", "gem", "clip-surgery"} <= methods
    models = {row["model"] for row in json.loads(run("models", "--json").stdout)}
    assert {"ViT-B/16", "ViT-B/32", "ViT-L/14"} <= models
    rows = json.loads(run("vocabularies", "--json").stdout)
    assert {row["vocabulary"]: row["names"] for row in rows} == {
        "voc21": 56,
        "voc20": 30,
        "context60": 60,
        "context59": 59,
        "coco_object": 113,
        "coco_stuff": 171,
        "cityscapes": 19,
        "ade20k": 150,
    }


def test_help_and_import_do_not_wait_for_torch() -> None:
    program = "import sys, naclip, naclip.cli.main; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
