"""What the words do: other names, names that never stood alone in a caption, absent things.

`python training/words.py FILE --count 100`; NACLIP refined, every number a percentage.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

import numpy as np
import torch
from measure import TEST_SEED, VALIDATION_SEED, ious

import naclip
from evaluate import SETTINGS, counted, scenes
from naclip.pipeline import Segmenter
from naclip.synthetic import BACKGROUNDS, CLASSES, THINGS, Scene, SceneClass


def name_for(kind: SceneClass, wording: str) -> str:
    if wording == "other" and len(kind.names) > 1:
        return kind.names[1]
    if wording == "never alone" and kind.shy:
        return kind.shy[0]
    return kind.name


def wordings(segmenter: Segmenter, pictures: list[Scene]) -> None:
    """IoU of the classes that have another name, under the first name and under the other."""
    first = _ious(segmenter, pictures, "first")
    print("wording,classes,iou under it,iou under the first name")
    for wording in ("other", "never alone"):
        other = _ious(segmenter, pictures, wording)
        for which, kinds in (("backgrounds", BACKGROUNDS), ("things", THINGS)):
            changed = [k.index for k in kinds if name_for(k, wording) != k.name]
            now, before = 100 * other[changed].mean(), 100 * first[changed].mean()
            print(f"{wording} ({which}),{len(changed)},{now:.1f},{before:.1f}")


def _ious(segmenter: Segmenter, pictures: list[Scene], wording: str) -> np.ndarray:
    words = {kind.name: [name_for(kind, wording)] for kind in CLASSES}
    total = np.zeros((len(CLASSES), len(CLASSES)), np.int64)
    for scene in pictures:
        labels = segmenter(scene.image, words, settings=SETTINGS).labels
        total += counted(scene.labels, labels)
    return ious(total)


def absent(segmenter: Segmenter, pictures: list[Scene], name_things: bool) -> None:
    """All backgrounds and one thing that is not there: how much of the picture does it take?

    `name_things`: the things in sight are asked for too; otherwise nothing but the absent one is
    there to claim them.
    """
    rng = Random(0)
    shares = []
    for scene in pictures:
        shown = {t.kind for t in scene.layout.things}
        missing = rng.choice([kind for kind in THINGS if kind not in shown])
        asked = [*BACKGROUNDS, *(k for k in THINGS if k in shown and name_things), missing]
        words = {kind.name: list(kind.names) for kind in asked}
        labels = segmenter(scene.image, words, settings=SETTINGS).labels
        shares.append(100 * float((labels == len(asked) - 1).mean()))
    above = 100 * float((np.array(shares) >= 5).mean())
    others = "with" if name_things else "without"
    print(f"absent thing, {others} words for those in sight: mean {np.mean(shares):.2f} % of the")
    print(f"pixels, at least 5 % of them in {above:.1f} % of the scenes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--test", action="store_true", help="the test seed: once, at the end")
    options = parser.parse_args()
    torch.set_num_threads(1)
    segmenter = naclip.load(options.weights)
    pictures = scenes(TEST_SEED if options.test else VALIDATION_SEED, options.count, 2)
    wordings(segmenter, pictures)
    absent(segmenter, pictures, name_things=True)
    absent(segmenter, pictures, name_things=False)


if __name__ == "__main__":
    main()
