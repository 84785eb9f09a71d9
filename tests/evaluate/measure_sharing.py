"""What `table main` costs next to its methods one by one, measured in one run.

    python -m tests.evaluate.measure_sharing --data ade20k=DIR --images 20 [--model M]

For each image, in turn: all rows of the table in one pass, then the rows of each method alone, raw
and, where the table has it, refined. Without --model, a ViT-B/16 of random weights: what it costs
does not depend on what it has learned.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch
from safetensors.torch import save_file

from naclip.clip.shape import ClipShape, TowerShape
from naclip.clip.text import TextTower
from naclip.clip.vision import VisionTower
from naclip.evaluate import tables
from naclip.evaluate.datasets import BENCHMARKS
from naclip.evaluate.given import open_given
from naclip.evaluate.jobs import Job, passes, predict, texts_of
from naclip.evaluate.metric import confusion
from naclip.pipeline import Segmenter, load
from naclip.settings import Settings
from naclip.vocabulary import templates

Clock = Callable[[], float]
B16 = ClipShape(TowerShape(768, 12, 12, 3072), TowerShape(512, 12, 8, 2048), 224, 16, 512)


def random_b16(folder: Path) -> Path:
    torch.manual_seed(0)
    tensors = {f"visual.{name}": t for name, t in VisionTower(B16).state_dict().items()}
    tensors |= TextTower(B16).state_dict()
    path = folder / "random-b16.safetensors"
    save_file({name: t.contiguous() for name, t in tensors.items()}, path)
    return path


def seconds(
    segmenter: Segmenter, jobs: Sequence[Job], index: int, texts: object, clock: Clock
) -> float:
    begin = clock()
    for together in passes(jobs):
        sample = together[0].data.samples[index]
        picture = sample.picture()
        for job, labels in predict(segmenter, picture, together, texts):  # type: ignore[arg-type]
            confusion(job.data.samples[index].truth(), labels, len(job.words.classes))
    return clock() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--model")
    parser.add_argument("--cpu", action="store_true", help="CPU time: for a machine that is shared")
    parser.add_argument("--methods", nargs="*", help="only these one by one")
    parser.add_argument("--raw", action="store_true", help="only rows without refinement")
    given = parser.parse_args()
    clock = time.process_time if given.cpu else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        segmenter = load(given.model or random_b16(Path(folder)))
        data = open_given(given.data, tuple(BENCHMARKS), given.images, Settings())
        rows = [row for row in tables.rows_of("main", None, False, ()) if row.method]
        if given.raw:
            rows = [row for row in rows if not row.post]
        methods = given.methods or list(dict.fromkeys(r.method.name for r in rows if r.method))
        everything = tables.jobs_of(rows, data, 12)
        alone = {
            name: tables.jobs_of([r for r in rows if r.method and r.method.name == name], data, 12)
            for name in methods
        }
        texts = texts_of(segmenter, everything, templates())
        count = min(len(d.samples) for d in data.values())
        seconds(segmenter, everything, 0, texts, clock)  # compiles kernels
        table: list[float] = []
        single: dict[str, list[float]] = {name: [] for name in methods}
        for index in range(count):
            table.append(seconds(segmenter, everything, index, texts, clock))
            for name, jobs in alone.items():
                single[name].append(seconds(segmenter, jobs, index, texts, clock))
            now = ", ".join(f"{name} {values[-1]:.2f}" for name, values in single.items())
            print(f"{index + 1}/{count}: table main {table[-1]:.2f} s, {now}", flush=True)
    dearest = max(single, key=lambda name: median(single[name]))
    for name, values in {**single, "table main": table}.items():
        print(f"{name:14s} median {median(values):.2f} s an image, sum {sum(values):.1f} s")
    ratios = [all_ / one for all_, one in zip(table, single[dearest], strict=True)]
    print(f"table main / {dearest}: median ratio {median(ratios):.2f}")


if __name__ == "__main__":
    main()
