"""`naclip reproduce refiners`: raw masks and those of each refiner, on the same scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from naclip import pictures
from naclip.evaluate import markdown
from naclip.evaluate.boundary import TOLERANCE, boundary_counts, boundary_f
from naclip.evaluate.datasets import DataSet, Sample
from naclip.evaluate.metric import Counts, Truth, confusion, scores
from naclip.evaluate.report import model_of, times, versions, write_json
from naclip.evaluate.run import names_hash
from naclip.files import atomic
from naclip.maps import ScoreMaps
from naclip.pipeline import Segmenter
from naclip.results import palette
from naclip.settings import Refiner, Settings
from naclip.vocabulary import templates

FORMAT = "naclip refiners 1"
RAW = "none"
Labels = NDArray[np.integer]


@dataclass
class Row:
    """One refiner over the images so far."""

    name: str
    settings: Settings
    confusion: Counts
    boundary: Counts
    seconds: list[float] = field(default_factory=list)

    def add(self, truth: Truth, labels: Labels, seconds: float) -> None:
        classes = len(self.confusion)
        self.confusion += confusion(truth, labels, classes)
        self.boundary += boundary_counts(truth, labels, classes)
        self.seconds.append(seconds)

    def numbers(self) -> dict[str, Any]:
        return {
            "refiner": self.name,
            "miou": 100 * scores(self.confusion).miou,
            "boundary_f": 100 * boundary_f(self.boundary)[1],
            "median_seconds": median(self.seconds),
            "settings": self.settings.flat(),
        }


def compare(
    segmenter: Segmenter,
    data: DataSet,
    out: Path,
    shown: Callable[[Sequence[Sample]], Iterable[Sample]],
) -> list[Path]:
    """Run all images of a data set; `shown` hands them out and shows the progress."""
    begin = time.perf_counter()
    rows = _rows(data)
    text = segmenter.words(data.words, templates())
    first: list[Labels] = []
    for sample in shown(data.samples):
        maps, truth = _scored(segmenter, data, sample, text), sample.truth()
        if not first:  # compiling and caches: not in anybody's time
            first = [_labels(maps, row)[0] for row in rows]
        for row in rows:
            row.add(truth, *_labels(maps, row))
    made = {
        "format": FORMAT,
        "title": "Refiners: mIoU and boundary F-score",
        "data": {
            "name": data.name,
            "images": len(data.samples),
            "images_sha256": names_hash(data),
        },
        "model": model_of(segmenter),
        "tolerance": TOLERANCE,
        "rows": [row.numbers() for row in rows],
        "versions": versions(),
        "times": times(time.perf_counter() - begin),
    }
    return _write(out, made, _drawn(data, rows, first))


def _rows(data: DataSet) -> list[Row]:
    changes = {RAW: {"refine": False}}
    changes |= {name: {"refine": True, "refiner": name} for name in get_args(Refiner)}
    classes = len(data.words.classes)
    return [
        Row(
            name,
            data.settings.updated(**change),
            np.zeros((classes, classes), np.int64),
            np.zeros((classes, 4), np.int64),
        )
        for name, change in changes.items()
    ]


@torch.inference_mode()
def _scored(segmenter: Segmenter, data: DataSet, sample: Sample, text: torch.Tensor) -> ScoreMaps:
    chosen = data.settings
    encoded = segmenter.encode(sample.picture(), chosen.windowing, [chosen.method])[0]
    return segmenter.score(encoded, text, data.words, chosen)


@torch.inference_mode()
def _labels(maps: ScoreMaps, row: Row) -> tuple[Labels, float]:
    begin = time.perf_counter()
    decoded = replace(maps, refinement=row.settings.refinement).decode(lean=True)
    labels = decoded.thresholded(row.settings.decoding.threshold).cpu().numpy()
    return labels, time.perf_counter() - begin


def _drawn(data: DataSet, rows: Sequence[Row], first: Sequence[Labels]) -> pictures.Picture8:
    """The first image: itself, the truth, and the labels of every row."""
    sample = data.samples[0]
    colours = palette(len(data.words.classes), data.words.has_background)
    truth = np.vstack([colours, [[255, 255, 255]]])[np.minimum(sample.truth(), len(colours))]
    masks = [(row.name, colours[labels]) for row, labels in zip(rows, first, strict=True)]
    tiles = [("image", sample.picture().rgb), ("truth", truth.astype(np.uint8)), *masks]
    return pictures.tiles([tiles[:3], tiles[3:]])


def _write(out: Path, made: dict[str, Any], picture: pictures.Picture8) -> list[Path]:
    paths = [out / f"refiners.{kind}" for kind in ("md", "json", "png")]
    with atomic(paths[0]) as file:
        file.write(markdown.refiners(made).encode())
    write_json(paths[1], made)
    with atomic(paths[2]) as file:
        Image.fromarray(picture).save(file, format="PNG")
    return paths
