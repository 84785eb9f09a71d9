"""Batches of (images, captions, what is true of what): a pure function of seed and step.

Nothing is remembered between batches, so a resumed run sees exactly what it would have seen.
Masks never leave this file: a caption and the list of concepts in sight are all that is passed on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Queue
from random import Random

import numpy as np
import torch
from recipe import SHAPE, Recipe
from torch import Tensor

from naclip.clip.tokens import clip_tokenizer
from naclip.synthetic import CLASSES, COLOUR_NAMES, Scene, SceneClass, draw

SHORT, LONG = 20, 48  # tokens: longest caption of one concept, longest full caption
MEAN = torch.tensor(SHAPE.mean).view(1, 3, 1, 1)
STD = torch.tensor(SHAPE.std).view(1, 3, 1, 1)
# Concepts: a class, or a class in a colour.
CONCEPTS = len(CLASSES) * (1 + len(COLOUR_NAMES))


@dataclass(frozen=True)
class Batch:
    pixels: Tensor  # (B, 3, 64, 64) normalised
    full: Tensor  # (B, LONG) ids of the full captions
    single: Tensor  # (B * concepts, SHORT) ids of captions of one concept
    own: Tensor  # (texts,) the image that a text was written for; full captions first
    true: Tensor  # (texts, B) bool: the text also holds for the image


def templates() -> list[str]:
    from importlib.resources import files

    text = files("naclip").joinpath("data/templates.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def normalised(images: list[np.ndarray]) -> Tensor:
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float()
    return (pixels - MEAN) / STD


def _concept(kind: SceneClass, colour: str | None) -> int:
    which = 0 if colour is None else 1 + COLOUR_NAMES.index(colour)
    return kind.index * (1 + len(COLOUR_NAMES)) + which


def _sight(scene: Scene) -> np.ndarray:
    """Which concepts hold for the scene: everything with a pixel counts, however small."""
    holds = np.zeros(CONCEPTS, np.float32)
    for index in np.unique(scene.labels):
        holds[_concept(CLASSES[index], None)] = 1
    for thing in scene.layout.things:
        if holds[_concept(thing.kind, None)]:
            holds[_concept(thing.kind, thing.colour)] = 1
    return holds


def _single(scene: Scene, rng: Random, prompts: list[str]) -> tuple[str, int]:
    """A caption of one concept. Things are chosen twice as often as materials."""
    things = [t for t in scene.layout.things if t.kind in scene.present]
    grounds = [c for c in scene.present if not c.is_thing]
    if things and (not grounds or rng.random() < 0.67):
        thing = rng.choice(things)
        colour = thing.colour if rng.random() < 0.3 else None
        name = rng.choice(thing.kind.names)
        words = name if colour is None else f"{colour} {name}"
        return rng.choice(prompts).format(words), _concept(thing.kind, colour)
    kind = rng.choice(grounds)
    return rng.choice(prompts).format(rng.choice(kind.names)), _concept(kind, None)


def batch_of(recipe: Recipe, step: int) -> Batch:
    rng = Random(f"{recipe.seed} {step}")
    prompts = templates()
    first = (recipe.seed << 32) + step * recipe.batch
    points = [1 if rng.random() < 0.5 else 2 for _ in range(recipe.batch)]
    scenes = [draw(first + i, samples=p) for i, p in enumerate(points)]
    needs = np.zeros((recipe.batch * (1 + recipe.concepts), CONCEPTS), np.float32)
    full, single = [], []
    for i, scene in enumerate(scenes):
        full.append(scene.sentence(0))
        for kind in scene.present:
            needs[i, _concept(kind, None)] = 1
    for scene in scenes:
        for _ in range(recipe.concepts):
            text, concept = _single(scene, rng, prompts)
            needs[recipe.batch + len(single), concept] = 1
            single.append(text)
    sight = np.stack([_sight(scene) for scene in scenes])
    own = np.concatenate(
        [np.arange(recipe.batch), np.repeat(np.arange(recipe.batch), recipe.concepts)]
    )
    encode = clip_tokenizer().encode
    return Batch(
        normalised([s.image for s in scenes]),
        torch.from_numpy(encode(full, LONG)),
        torch.from_numpy(encode(single, SHORT)),
        torch.from_numpy(own),
        torch.from_numpy((needs @ sight.T) >= needs.sum(1, keepdims=True) - 0.5),
    )


def ahead(recipe: Recipe, start: int, stop: int, depth: int = 3) -> Iterator[Batch]:
    """Batches start .. stop - 1, drawn in a thread while the caller computes."""
    queue: Queue[Batch] = Queue(depth)

    def work() -> None:
        for step in range(start, stop):
            queue.put(batch_of(recipe, step))

    threading.Thread(target=work, daemon=True).start()
    for _ in range(start, stop):
        yield queue.get()
