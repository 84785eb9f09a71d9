"""What words do with the model that comes with the package: other names, and absent things.

The truth is drawn with the scenes. `python training/words.py` measures the same on 300 of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import naclip
from naclip.synthetic import BACKGROUNDS, CLASSES, THINGS

from .test_quality import scenes

SCENES = 15
GROUND = [name for kind in BACKGROUNDS for name in kind.names]


@pytest.fixture(scope="module")
def segment() -> naclip.Segmenter:
    return naclip.load("tiny")


def thing_iou(segment: naclip.Segmenter, words: Mapping[str, Sequence[str]]) -> float:
    """Mean over the things that have a name no caption used alone; written out here."""
    pictures = scenes()[:SCENES]
    truth = np.stack([scene.labels for scene in pictures])
    found = np.stack([segment(scene.image, words).labels for scene in pictures])
    kinds = [kind.index for kind in THINGS if kind.shy and (truth == kind.index).any()]
    pairs = [(found == kind, truth == kind) for kind in kinds]
    hits = [(ours & theirs).sum() / (ours | theirs).sum() for ours, theirs in pairs]
    assert len(hits) >= 8
    return float(np.mean(hits))


def test_names_that_never_stood_alone_in_a_caption_find_their_things(
    segment: naclip.Segmenter,
) -> None:
    first = {kind.name: [kind.name] for kind in CLASSES}
    shy = {kind.name: [kind.shy[0] if kind.shy else kind.name] for kind in CLASSES}
    assert thing_iou(segment, shy) > max(0.5, 0.9 * thing_iou(segment, first))


def test_a_synonym_finds_what_the_first_name_finds(segment: naclip.Segmenter) -> None:
    first = {kind.name: [kind.name] for kind in CLASSES}
    other = {kind.name: [kind.names[-1]] for kind in CLASSES}
    assert sum(len(kind.names) > 1 for kind in CLASSES) >= 10
    assert thing_iou(segment, other) > max(0.5, 0.9 * thing_iou(segment, first))


def test_an_absent_thing_covers_little_where_background_is_on(segment: naclip.Segmenter) -> None:
    """Each scene is asked for a thing that it lacks, things that it shows, and the ground."""
    shares = []
    for number, scene in enumerate(scenes()[:SCENES]):
        shown = [kind for kind in THINGS if (scene.labels == kind.index).any()]
        lacking = [kind for kind in THINGS if kind not in {t.kind for t in scene.layout.things}]
        absent = lacking[number % len(lacking)]
        words = {kind.name: list(kind.names) for kind in (*shown, absent)}
        result = segment(scene.image, words, background=GROUND)
        shares.append(result.coverage[absent.name])
    assert np.mean(shares) < 0.05
