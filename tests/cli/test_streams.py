"""`naclip segment` between pipes, in narrow encodings, and stopped half-way."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

PARITY = Path(__file__).parents[1] / "parity"
MODEL = str(PARITY / "tiny-clip.safetensors")
CAT = str(PARITY / "chelsea.png")
QUICK = ["-m", MODEL, "--templates", "plain", "--no-refine", "--short-side", "64"]
WORDS = ["-c", "cat", "-c", "sofa"]


def run(
    *arguments: str | bytes, encoding: str = "utf-8", stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "naclip", "segment", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=300,
        check=False,
        env={**os.environ, "COLUMNS": "200", "PYTHONIOENCODING": encoding},
    )


def is_mask_of_the_cat(contents: bytes) -> bool:
    mask = np.asarray(Image.open(io.BytesIO(contents)))
    return mask.shape == (300, 451) and set(np.unique(mask)) <= {0, 1}


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_a_mask_on_standard_output_is_alone_there(name: str) -> None:
    done = run(CAT, *WORDS, *QUICK, "-o", name)
    assert done.returncode == 0, done.stderr
    assert is_mask_of_the_cat(done.stdout)
    assert b"cat" in done.stderr  # the legend


def test_standard_output_that_is_a_file_is_filled_and_not_replaced(tmp_path: Path) -> None:
    with (tmp_path / "m.png").open("wb") as file:
        done = run(CAT, *WORDS, *QUICK, "-o", "/dev/stdout", stdout=file.fileno())
    assert done.returncode == 0, done.stderr
    assert is_mask_of_the_cat((tmp_path / "m.png").read_bytes())
    assert Path("/dev/stdout").is_symlink()


def test_an_output_may_be_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    arguments = [sys.executable, "-m", "naclip", "segment", CAT, *WORDS, *QUICK, "-o", str(pipe)]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
        contents = pipe.read_bytes()
    assert process.returncode == 0
    assert is_mask_of_the_cat(contents)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_json_shares_standard_output_with_no_mask() -> None:
    done = run(CAT, *WORDS, *QUICK, "-o", "-", "--json")
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"--json has standard output to itself" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "cp1252"])
def test_words_that_the_encoding_lacks_are_escaped(encoding: str) -> None:
    words = ["-c", "猫", "-c", "Bär=😀,ours"]
    done = run(CAT, *words, *QUICK, "--json", encoding=encoding)
    assert done.returncode == 0, done.stderr
    (image,) = json.loads(done.stdout.decode(encoding))["images"]
    assert [row["name"] for row in image["classes"]] == ["猫", "Bär"]
    table = run(CAT, *words, *QUICK, encoding=encoding)
    assert table.returncode == 0, table.stderr
    assert b"Traceback" not in table.stderr


def test_a_file_name_that_is_no_text_can_be_printed(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xff.png"
    try:
        Path(os.fsdecode(path)).write_bytes(Path(CAT).read_bytes())
    except OSError:
        pytest.fail("this test needs a file system that takes any bytes as a name")
    strict = run(path, *WORDS, *QUICK, "--json", encoding="utf-8:strict")
    assert strict.returncode == 0, strict.stderr
    (image,) = json.loads(strict.stdout.decode("utf-8"))["images"]
    assert os.fsencode(image["image"]) == path


def test_an_interruption_says_so_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    pipe, out = tmp_path / "image.png", tmp_path / "m.png"
    os.mkfifo(pipe)
    arguments = [sys.executable, "-m", "naclip", "segment", str(pipe), *WORDS, *QUICK]
    with (
        subprocess.Popen([*arguments, "-o", str(out)], stderr=subprocess.PIPE) as process,
        pipe.open("wb"),  # opens when it is opened for reading: it now waits for its image
    ):
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert stderr == b"naclip: interrupted\n"
    assert list(tmp_path.iterdir()) == [pipe]


def test_the_home_of_nobody_is_no_place_for_a_model() -> None:
    done = run(CAT, *WORDS, "-m", "~nobody-of-that-name/clip.pt")
    assert done.returncode == 1
    assert done.stderr == b"naclip: ~nobody-of-that-name/clip.pt: no such file\n"
