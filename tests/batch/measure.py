"""The measurements of docs/batch.md and docs/cluster.md, on drawn scenes with the model `tiny`.

python -m tests.batch.measure throughput --images 200   batch against a loop of single calls
python -m tests.batch.measure memory --images 200 2000  peak of a whole process
python -m tests.batch.measure kill --images 500 --kills 6 [--engine ray]
python -m tests.batch.measure ray --images 200          overhead of Ray for each image
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image

import naclip
from naclip.bulk.cluster import RayCluster
from naclip.synthetic import draw

from .jobs import contents

WORDS = ["car", "house", "tree"]


def scenes(folder: Path, count: int) -> Path:
    for seed in range(count):
        path = folder / f"{seed % 7}" / f"{seed:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw(seed, (96, 128), scale=1).image).save(path, quality=92)
    return folder


def command(source: Path, output: Path, *more: str) -> list[str]:
    words = [part for word in WORDS for part in ("-c", word)]
    start = [sys.executable, "-m", "naclip", "batch", str(source), str(output)]
    return [*start, *words, "-m", "tiny", *more]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """(seconds of the clock, seconds of this process's CPU)"""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def throughput(folder: Path, images: int, rounds: int = 3) -> None:
    """In turns, since a machine is not equally busy all the time; models are loaded by both."""
    source = scenes(folder / "in", images)
    paths = sorted(source.rglob("*.jpg"))

    def loop(output: Path) -> None:
        segment = naclip.load("tiny")
        for path in paths:
            target = output / path.relative_to(source).with_suffix(".png")
            target.parent.mkdir(parents=True, exist_ok=True)
            segment(path, WORDS).save(target)

    naclip.load("tiny")(paths[0], WORDS)  # compiles, once
    for number in range(rounds):
        single = timed(lambda n=number: loop(folder / f"loop{n}"))
        many = timed(lambda n=number: naclip.batch(source, folder / f"b{n}", WORDS, model="tiny"))
        print(
            f"loop {images / single[0]:.1f} images/s ({single[1] / images * 1000:.1f} ms of CPU "
            f"each), batch {images / many[0]:.1f} ({many[1] / images * 1000:.1f} ms): "
            f"{single[0] / many[0]:.2f}x by the clock, {single[1] / many[1]:.2f}x by CPU",
            flush=True,
        )


def memory(folder: Path, counts: list[int]) -> None:
    for count in counts:
        source = scenes(folder / f"in{count}", count)
        begin = time.perf_counter()
        process = subprocess.Popen(
            command(source, folder / f"out{count}"), stderr=subprocess.DEVNULL
        )
        _, _, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        peak = used.ru_maxrss / 1024
        print(f"{count} images: peak {peak:.0f} MB, {seconds:.0f} s", flush=True)


def kill(folder: Path, images: int, kills: int, engine: str) -> None:
    source, output, clean = scenes(folder / "in", images), folder / "out", folder / "clean"
    everything = ("--overlays", "--table")
    subprocess.run(command(source, clean, *everything), check=True)
    ours = command(source, output, *everything, "--engine", engine)
    record = output / ".naclip/record.jsonl"

    def known() -> int:
        return record.read_bytes().count(b"\n") if record.exists() else 0

    rng = random.Random(7)
    for number in range(kills):
        before = known()
        process = subprocess.Popen(ours, stderr=subprocess.DEVNULL)
        while known() <= before and process.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 1))
        assert process.poll() is None, "done before it was killed: use more images"
        process.kill()
        process.wait()
        print(f"kill {number + 1}: chunks {before} -> {known()}", flush=True)
    subprocess.run(ours, check=True)
    print(f"{len(contents(output))} files, identical: {contents(output) == contents(clean)}")


def ray(folder: Path, images: int) -> None:
    """The same model and one thread each: what is left is Ray's own, and the start of actors."""
    os.environ["OMP_NUM_THREADS"] = "1"
    source = scenes(folder / "in", images)
    half = scenes(folder / "half", images // 2)
    for name, machines in (("local", None), ("ray", RayCluster(actors=(1, 1)))):
        took = [
            timed(
                lambda s=s, m=machines, n=name: naclip.batch(
                    s, folder / n / s.name, WORDS, model="tiny", machines=m
                )
            )[0]
            for s in (half, source)
        ]
        each = (took[1] - took[0]) / (images - images // 2)
        start = took[0] - each * (images // 2)
        print(f"{name}: {each * 1000:.1f} ms an image, {start:.1f} s to start", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("throughput", "memory", "kill", "ray"))
    parser.add_argument("--images", type=int, nargs="+", default=[200])
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--engine", default="auto")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, count = Path(name), asked.images[0]
        if asked.what == "throughput":
            throughput(folder, count)
        elif asked.what == "memory":
            memory(folder, asked.images)
        elif asked.what == "kill":
            kill(folder, count, asked.kills, asked.engine)
        else:
            ray(folder, count)


if __name__ == "__main__":
    main()
