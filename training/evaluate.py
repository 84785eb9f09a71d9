"""The numbers of docs/tiny-model.md, through the package's own pipeline.

`python training/evaluate.py FILE --count 300 --methods naclip clip` prints mIoU over all classes,
backgrounds and things, refined and raw. The default scenes are of the validation seed; --test takes
the test seed, which is for the end.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import torch
from measure import TEST_SEED, VALIDATION_SEED, ious, summary

import naclip
from naclip.pipeline import Segmenter
from naclip.settings import Settings
from naclip.synthetic import CLASSES, Scene, draw

EVERY_NAME = {kind.name: kind.all_names for kind in CLASSES}
SIZE = (96, 128)  # units: training pixels
SETTINGS = Settings().updated(short_side=96, window=64, stride=32, sigma=1.0)


def scenes(first: int, count: int, scale: float) -> list[Scene]:
    return [draw(first + i, SIZE, scale=scale, split="held-out") for i in range(count)]


def counted(truth: np.ndarray, guess: np.ndarray) -> np.ndarray:
    pairs = truth.astype(np.int64) * len(CLASSES) + guess
    side = len(CLASSES)
    return np.bincount(pairs.ravel(), minlength=side * side).reshape(side, side)


def score(segmenter: Segmenter, pictures: list[Scene], settings: Settings) -> np.ndarray:
    total = np.zeros((len(CLASSES), len(CLASSES)), np.int64)
    for scene in pictures:
        found = segmenter(scene.image, EVERY_NAME, settings=settings)
        total += counted(scene.labels, found.labels)
    return total


def row(name: str, counts: np.ndarray) -> dict[str, object]:
    return {"what": name, **{k: round(100 * v, 1) for k, v in summary(counts).items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--scale", type=float, default=2)
    parser.add_argument("--methods", nargs="*", default=["naclip"])
    parser.add_argument("--sigma", type=float, nargs="*", default=[SETTINGS.method.sigma])
    parser.add_argument("--test", action="store_true", help="the test seed: once, at the end")
    parser.add_argument("--classes", action="store_true", help="IoU of each class too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    segmenter = naclip.load(options.weights)
    first = TEST_SEED if options.test else VALIDATION_SEED
    pictures = scenes(first, options.count, options.scale)
    writer = csv.DictWriter(sys.stdout, ["what", "miou", "backgrounds", "things"])
    writer.writeheader()
    for method in options.methods:
        for sigma in options.sigma if method in ("naclip", "neighbours") else [1.0]:
            for refine in (True, False):
                chosen = SETTINGS.updated(method=method, refine=refine)
                if method in ("naclip", "neighbours"):
                    chosen = chosen.updated(sigma=sigma)
                counts = score(segmenter, pictures, chosen)
                label = f"{method} sigma {sigma} {'refined' if refine else 'raw'}"
                writer.writerow(row(label, counts))
                sys.stdout.flush()
                if options.classes:
                    for kind, value in zip(CLASSES, ious(counts), strict=True):
                        print(f"  {kind.name:12s} {100 * value:5.1f}")


if __name__ == "__main__":
    main()
