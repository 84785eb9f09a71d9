"""A plain evaluation for use during training: patches, words, bilinear, argmax; no refinement.

It reads the towers through naclip.methods, and is otherwise independent of the package's pipeline.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from batches import normalised, templates
from torch import Tensor

from naclip.clip.text import TextTower
from naclip.clip.tokens import clip_tokenizer
from naclip.clip.vision import VisionTower
from naclip.methods import read_patches
from naclip.settings import METHODS
from naclip.synthetic import BACKGROUNDS, CLASSES, Scene, draw

VALIDATION_SEED = 1_000_000  # looked at during development
TEST_SEED = 7_000_000  # looked at once, at the end


@cache
def validation_scenes(count: int) -> list[Scene]:
    return [draw(VALIDATION_SEED + i, split="held-out") for i in range(count)]


@torch.no_grad()
def name_features(text: TextTower, renumber: Callable[[Tensor], Tensor], every: int = 8) -> Tensor:
    """(classes, E) of the first names, through every n-th prompt template."""
    rows = []
    for kind in CLASSES:
        prompts = [t.format(kind.name) for t in templates()[::every]]
        ids = torch.from_numpy(clip_tokenizer().encode(prompts, 24))
        rows.append(F.normalize(F.normalize(text(renumber(ids)).float(), dim=-1).mean(0), dim=0))
    return torch.stack(rows)


@torch.no_grad()
def confusion(
    vision: VisionTower, names: Tensor, scenes: list[Scene], method: str, sigma: float
) -> np.ndarray:
    """(truth, predicted) pixel counts over the scenes."""
    how = dataclasses.replace(METHODS[method], sigma=sigma)
    total = np.zeros((len(CLASSES), len(CLASSES)), np.int64)
    for start in range(0, len(scenes), 50):
        chunk = scenes[start : start + 50]
        trace = vision.trace(normalised(np.stack([s.image for s in chunk])), how.reads)
        cosine = read_patches(vision, trace, how) @ names.T
        maps = cosine.transpose(1, 2).unflatten(2, trace.grid)
        size = chunk[0].labels.shape
        guess = F.interpolate(maps, size, mode="bilinear").argmax(1).numpy()
        truth = np.stack([s.labels for s in chunk]).astype(np.int64)
        pairs = truth * len(CLASSES) + guess
        total += np.bincount(pairs.ravel(), minlength=total.size).reshape(total.shape)
    return total


def ious(counts: np.ndarray) -> np.ndarray:
    hit = np.diag(counts)
    return hit / np.maximum(1, counts.sum(0) + counts.sum(1) - hit)


def summary(counts: np.ndarray) -> dict[str, float]:
    each = ious(counts)
    ground = len(BACKGROUNDS)
    return {
        "miou": float(each.mean()),
        "backgrounds": float(each[:ground].mean()),
        "things": float(each[ground:].mean()),
    }
