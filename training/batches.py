"""Batches of (images, captions, what is true of what): a pure function of seed and step.

Nothing is remembered between batches, so a resumed run sees exactly what it would have seen.
Masks never leave this file: a caption and the list of concepts in sight are all that is passed on.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Full
from random import Random
from typing import Any

import numpy as np
import torch
from recipe import SHAPE, Recipe
from torch import Tensor

from naclip.clip.tokens import clip_tokenizer
from naclip.synthetic import CLASSES, COLOUR_NAMES, Scene, SceneClass, draw

SHORT, LONG = 20, 60  # tokens: no caption of one concept, no full caption is longer
MEAN = torch.tensor(SHAPE.mean).view(1, 3, 1, 1)
STD = torch.tensor(SHAPE.std).view(1, 3, 1, 1)
# Concepts: a class, or a class in a colour.
CONCEPTS = len(CLASSES) * (1 + len(COLOUR_NAMES))


@dataclass(frozen=True)
class Batch:
    pixels: Tensor  # (B, 3, 64, 64) normalised
    full: Tensor  # (B, T) ids of the full captions
    single: Tensor  # (B * concepts, T) ids of captions of one concept
    own: Tensor  # (texts,) the image that a text was written for; full captions first
    true: Tensor  # (texts, B) bool: the text also holds for the image


def templates() -> list[str]:
    from importlib.resources import files

    text = files("naclip").joinpath("data/templates.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def normalised(images: np.ndarray) -> Tensor:
    """(B, H, W, 3) uint8 -> (B, 3, H, W)."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float()
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


def _ids(texts: list[str], longest: int) -> np.ndarray:
    """(texts, T) token ids, cut behind the last end token: attention is causal, nothing is lost."""
    ids = clip_tokenizer().encode(texts, longest)
    return ids[:, : ids.argmax(axis=1).max() + 1]


def drawn(recipe: Recipe, step: int) -> tuple[np.ndarray, ...]:
    """The fields of a batch as arrays, images as drawn."""
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
    true = (needs @ sight.T) >= needs.sum(1, keepdims=True) - 0.5
    images = np.stack([s.image for s in scenes])
    return images, _ids(full, LONG), _ids(single, SHORT), own, true


def ahead(recipe: Recipe, start: int, stop: int, depth: int = 4) -> Iterator[Batch]:
    """Batches start .. stop - 1, drawn in a process of their own while the caller computes.

    A thread would take the interpreter lock from the many small calls of a training step.
    """
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[Batch] = context.Queue(depth)
    worker = context.Process(target=_work, args=(queue, recipe, start, stop), daemon=True)
    worker.start()
    for _ in range(start, stop):
        images, *texts = queue.get()
        yield Batch(normalised(images), *(torch.from_numpy(t) for t in texts))
    worker.join()


def _work(queue: multiprocessing.Queue[Any], recipe: Recipe, start: int, stop: int) -> None:
    torch.set_num_threads(1)
    parent = os.getppid()
    for step in range(start, stop):
        batch = drawn(recipe, step)
        while not _put(queue, batch):
            if os.getppid() != parent:  # a killed training must not leave its worker behind
                queue.cancel_join_thread()
                return


def _put(queue: multiprocessing.Queue[Any], batch: tuple[np.ndarray, ...]) -> bool:
    try:
        queue.put(batch, timeout=5)
    except Full:
        return False
    return True
