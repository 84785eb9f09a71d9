"""Small pictures, `naclip batch` as a real process, and what two outputs have in common."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from PIL import Image

from naclip.bulk.run import Finished
from naclip.bulk.run import batch as run_batch

WORDS = ["-c", "car", "-c", "house=building", "-c", "tree", "-m", "tiny", "--no-refine"]


def draw(folder: Path, count: int) -> Path:
    """Smooth noise of two sizes in two folders: quick to make, and no two alike."""
    for number in range(count):
        rng = np.random.default_rng(number)
        small = Image.fromarray(rng.integers(0, 256, (5, 7, 3), np.uint8))
        path = folder / ("even" if number % 2 == 0 else "odd/deep") / f"{number:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        small.resize((80, 64) if number % 3 else (64, 96), Image.Resampling.BICUBIC).save(path)
    return folder


def command(source: Path | str, output: Path | str, *more: str) -> list[str]:
    return [sys.executable, "-m", "naclip", "batch", str(source), str(output), *WORDS, *more]


def environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def run(
    source: Path | str, output: Path | str, *more: str, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(source, output, *more),
        **options,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment(),
    )


def batch(source: Path | str, output: Path | str, **options: Any) -> Finished:
    """The same in this process: a start costs some seconds."""
    words = ["car", "house=building", "tree"]
    return run_batch(source, output, words, model="tiny", refine=False, **options)


def contents(output: Path) -> dict[str, str]:
    """The hash of every file that is for users."""
    return {
        path.relative_to(output).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in output.rglob("*")
        if path.is_file() and ".naclip" not in path.parts
    }


def actor_processes() -> list[int]:
    """Ray's actors with our models below this process, by what Ray calls them."""
    ours = psutil.Process().children(recursive=True)
    return [process.pid for process in ours if "MapWorker" in " ".join(process.cmdline())]
