"""The measurements of docs/batch.md and docs/cluster.md, on drawn scenes with the model `tiny`.

python -m tests.batch.measure throughput --images 200   batch against a loop of single calls
python -m tests.batch.measure memory --images 200 2000  peak of a whole process
python -m tests.batch.measure kill --images 500 --kills 6 [--engine ray]
python -m tests.batch.measure ray --images 200          overhead of Ray for each image
python -m tests.batch.measure rate --images 32          ViT-B/16: seconds an image, by engine
python -m tests.batch.measure driver --images 100000    what one driver can list, record, send out
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
from PIL import Image

import naclip
from naclip.bulk import inputs, manifest
from naclip.bulk.chunks import Chunk, Outcome, chunk_count, chunk_of
from naclip.bulk.cluster import CHUNKS_AT_ONCE, RayCluster, _row, connected
from naclip.bulk.record import Record
from naclip.bulk.stores import LocalStore
from naclip.synthetic import draw
from naclip.vocabulary import load as load_vocabulary

from .jobs import actor_processes, contents

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
    """Drivers die; on Ray an actor before each of them, and a node in the middle."""
    source, output, clean = scenes(folder / "in", images), folder / "out", folder / "clean"
    everything = ("--overlays", "--table", "--chunk", "2")
    subprocess.run(command(source, clean, *everything), check=True)
    ours = command(source, output, *everything, "--engine", engine)
    record = output / ".naclip/record.jsonl"
    rng = random.Random(7)

    def wait(process: subprocess.Popen[bytes], chunks: int) -> int:
        """Until so many more chunks are recorded, and for a moment after that."""
        before = recorded(record)
        while recorded(record) < before + chunks:
            assert process.poll() is None, "done before it was killed: use more images"
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 1))
        return recorded(record)

    with Machines() if engine == "ray" else nullcontext() as machines:
        if machines:
            ours += ["--address", machines.address, "--actors", "2,3"]
        for number in range(kills):
            before = recorded(record)
            process = subprocess.Popen(ours, stderr=subprocess.DEVNULL)
            done = [before, wait(process, 1)]
            if machines:
                print(machines.lose(rng, node=number == kills // 2), end=", ")
                done.append(wait(process, 4))
            process.kill()
            process.wait()
            print(f"driver {number + 1} killed: chunks {done}", flush=True)
        subprocess.run(ours, check=True)
    print(f"{len(contents(output))} files, identical: {contents(output) == contents(clean)}")


def recorded(record: Path) -> int:
    return record.read_bytes().count(b"\n") if record.exists() else 0


class Machines:
    """A Ray cluster on this machine: a head that does no work, and three nodes of one CPU."""

    def __enter__(self) -> Machines:
        from ray.cluster_utils import Cluster

        size = {"object_store_memory": 100_000_000}
        head = {"num_cpus": 0, **size}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._nodes = [self._cluster.add_node(num_cpus=1, **size) for _ in range(3)]
        self.address = str(self._cluster.address)
        return self

    def __exit__(self, *error: object) -> None:
        self._cluster.shutdown()

    def lose(self, rng: random.Random, node: bool) -> str:
        if node:
            self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)
            return "node removed"
        os.kill(rng.choice(actor_processes()), signal.SIGKILL)
        return "actor killed"


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


def rate(folder: Path, images: int) -> None:
    """ViT-B/16 with random weights on photos of 500x375 in 21 classes: files in, masks out."""
    from transformers import CLIPConfig, CLIPModel

    CLIPModel(CLIPConfig(vision_config={"patch_size": 16})).save_pretrained(folder / "b16")
    source = folder / "in"
    for number in range(images):
        path = source / f"{number % 4}" / f"{number:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw(number, (375, 500), scale=1).image).save(path, quality=92)
    quarter = images // 4
    for engine, precision in (("torch", "fp32"), ("torch", "bf16"), ("openvino", "bf16")):
        for refine in (False, True):

            def run(part: Path, engine: str = engine, precision: str = precision, r: bool = refine):
                output = folder / f"{engine}-{precision}-{r}-{part.name}"
                words = load_vocabulary("voc21")
                naclip.batch(
                    part, output, words, model=folder / "b16", activation="quick_gelu",
                    engine=engine, precision=precision, refine=r,
                )  # fmt: skip

            run(source / "0")  # words, kernels, the engine's own cache
            short, long = timed(lambda r=run: r(source / "1")), timed(lambda r=run: r(source))
            wall, cpu = ((b - a) / (images - quarter) for a, b in zip(short, long, strict=True))
            print(
                f"{engine} {precision}, refine={refine}: {wall:.2f} s an image, {cpu:.2f} s of CPU",
                flush=True,
            )


class Nobody:
    """In an actor's place: says that chunks are done, and does nothing."""

    def __init__(self, shipped: object) -> None:
        pass

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        rows = [json.loads(row) for row in batch["chunk"]]
        outcomes = [asdict(Outcome(row["number"], len(row["items"]))) for row in rows]
        return {"outcome": [json.dumps(outcome) for outcome in outcomes]}


def driver(folder: Path, images: int) -> None:
    """What one driver can do, with files that are empty and actors that do nothing."""
    source = folder / "in"
    for number in range(images):
        path = source / f"{number // 1000:06d}" / f"{number:012d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    begin = memory_of_this()
    found = inputs.find(str(source))
    store = LocalStore(str(folder / "out"))
    manifest.write_items(store, found)
    size = (folder / "out" / manifest.ITEMS).stat().st_size
    listing = timed(lambda: inputs.find(str(source)))
    print(f"images/s listed: {rates(listing, images)}; {size / images:.0f} bytes each", flush=True)
    chunks = [chunk_of(found.items, 8, n) for n in range(chunk_count(images, 8))]
    grown = held(images, begin)
    print(f"this process holds {begin / 1e6:.0f} MB and, for each image, {grown}", flush=True)
    record = Record(store, len(chunks), 8)
    recording = timed(lambda: [record.add(Outcome(chunk.number, 8)) for chunk in chunks[:1000]])
    print(f"chunks/s recorded: {rates(recording, 1000)}; each synced", flush=True)
    machines = RayCluster(actors=(2, 2))

    def hand_out(part: list[Chunk]) -> None:
        rows = [_row(chunk) for chunk in part]
        data = machines.mapped(started.data.from_items, rows, Nobody, None, CHUNKS_AT_ONCE)
        assert sum(1 for _ in data) == len(part)

    with connected(None) as started:
        hand_out(chunks[:100])
        handing = timed(lambda: hand_out(chunks))
    print(f"chunks/s handed out by Ray: {rates(handing, len(chunks))}", end="; ")
    print(f"now {held(images, begin)} an image", flush=True)


def rates(took: tuple[float, float], count: int) -> str:
    return f"{count / took[0]:.0f} by the clock, {count / took[1]:.0f} by this process's CPU"


def memory_of_this() -> int:
    return int(psutil.Process().memory_info().rss)


def held(images: int, begin: int) -> str:
    return f"{(memory_of_this() - begin) / images:.0f} bytes"


WHAT: dict[str, Any] = {
    "throughput": throughput, "memory": memory, "kill": kill, "ray": ray, "driver": driver,
    "rate": rate,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=list(WHAT))
    parser.add_argument("--images", type=int, nargs="+", default=[200])
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--engine", default="auto")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, count = Path(name), asked.images[0]
        if asked.what == "memory":
            memory(folder, asked.images)
        elif asked.what == "kill":
            kill(folder, count, asked.kills, asked.engine)
        else:
            WHAT[asked.what](folder, count)


if __name__ == "__main__":
    main()
