"""Training on the rows of the token table that captions can use: 156 instead of 49,408.

Ids are renumbered in their own order, so the end token stays the largest and the text tower needs
no change. On export the rows return to their places; the rows of words never seen are zero.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from batches import templates
from recipe import SHAPE
from torch import Tensor

from naclip.clip.tokens import clip_tokenizer
from naclip.synthetic import CLASSES, COLOUR_NAMES

CAPTION_WORDS = (
    "a an the photo of picture image there is view nothing but on in front against with before "
    "and over under , . stands lies near"
)


def used_ids() -> np.ndarray:
    """Sorted ids of every token that a caption or a prompt of a known name contains."""
    texts = [CAPTION_WORDS, *COLOUR_NAMES, *templates()]
    texts += [name for kind in CLASSES for name in kind.all_names]
    texts += [f"{name}{mark}" for kind in CLASSES for name in kind.all_names for mark in (".", ",")]
    ids = np.unique(clip_tokenizer().encode(texts))
    return np.union1d(ids, [0])


class Renumbering:
    def __init__(self) -> None:
        self.ids = used_ids()
        self.table = torch.full((SHAPE.vocabulary,), -1)
        self.table[torch.from_numpy(self.ids)] = torch.arange(len(self.ids))
        self.shape = dataclasses.replace(SHAPE, vocabulary=len(self.ids))

    def __call__(self, ids: Tensor) -> Tensor:
        small = self.table[ids]
        if bool((small < 0).any()):
            unknown = ids[small < 0].unique().tolist()
            raise ValueError(f"captions use tokens that compact.used_ids misses: {unknown}")
        return small

    def expand(self, rows: Tensor) -> Tensor:
        """The small table's rows at their places in the full one."""
        full = torch.zeros(SHAPE.vocabulary, rows.shape[1], dtype=rows.dtype)
        full[torch.from_numpy(self.ids)] = rows
        return full
