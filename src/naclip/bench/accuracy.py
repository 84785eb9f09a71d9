"""What approximate engines do to labels: the tiny model on drawn scenes, fp32 beside the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from naclip.bench.suites import fast_engines
from naclip.clip.model import open_model
from naclip.evaluate import metric
from naclip.evaluate.drawn import open_drawn
from naclip.pipeline import Segmenter
from naclip.synthetic import draw

MODEL = "tiny"


@dataclass(frozen=True)
class Accuracy:
    engine: str
    precision: str
    changed: float  # share of the pixels whose label is not the reference's
    miou: float


def accuracy(scenes: int) -> list[Accuracy]:
    """The first row, torch in fp32, is the reference."""
    model = open_model(MODEL)
    data = open_drawn(model.defaults)
    samples = data.samples[:scenes]
    seen = [draw(seed=seed, size=(96, 128), scale=2, split="train").image for seed in range(8)]
    reference: list[np.ndarray] = []
    rows = []
    for engine, precision in fast_engines():
        like_those = seen if precision == "int8" else []
        segment = Segmenter(model, "cpu", precision, engine, like_those)  # type: ignore[arg-type]
        classes = len(data.words.classes)
        counts = np.zeros((classes, classes), np.int64)
        changed = []
        for index, sample in enumerate(samples):
            labels = segment(sample.picture(), data.words, settings=model.defaults).labels
            if len(reference) <= index:
                reference.append(labels)
            changed.append(float((labels != reference[index]).mean()))
            counts += metric.confusion(sample.truth(), labels, classes)
        miou = metric.scores(counts).miou
        rows.append(Accuracy(engine, precision, float(np.mean(changed)), miou))
    return rows


def table(rows: list[Accuracy]) -> list[str]:
    lines = ["| | changed pixels | mIoU |", "|---|--:|--:|"]
    for row in rows:
        name = f"{row.engine} {row.precision}"
        lines.append(f"| {name} | {100 * row.changed:.3f}% | {100 * row.miou:.2f} |")
    return lines
