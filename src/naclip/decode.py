"""Score maps of names -> labels: softmax over all names, max over synonyms, threshold, argmax.

A class's probability is the largest of its names', so the argmax needs no softmax at all, and the
probability of the best class needs only running sums: maps arrive in blocks and none is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Decoded:
    labels: Tensor  # (H, W) before the threshold
    score: Tensor  # (H, W) of the best class, renormalised over classes: what users are told
    probability: Tensor  # (H, W) of the best class, among all names: what the threshold is for
    margin: Tensor | None  # (H, W) the best class's probability minus the second's
    log_classes: Tensor | None  # (H, W) log of the sum over classes of exp(its largest logit)

    def thresholded(self, threshold: float, background: int = 0) -> Tensor:
        """Labels, with the background where the best class is less likely than the threshold."""
        if threshold <= 0:
            return self.labels
        return torch.where(self.probability < threshold, background, self.labels)


@dataclass(frozen=True)
class _Running:
    """All that is kept of the classes that have passed by."""

    labels: Tensor
    best: Tensor  # the best class's logit
    second: Tensor  # the second class's; -inf where there is none
    log_classes: Tensor


def decode(
    blocks: Iterable[tuple[int, Tensor]], class_of: tuple[int, ...], logit_scale: float
) -> Decoded:
    """Blocks of (first name, score maps (names, H, W)), in the order of the names."""
    state: _Running | None = None
    label, largest = -1, torch.empty(0)  # of the class whose names are passing by
    log_names = torch.empty(0)  # log of the sum over names of exp(logit)
    for first, maps in blocks:
        for name, scores in enumerate(maps, start=first):
            logits = scores * logit_scale
            log_names = torch.logaddexp(log_names, logits) if name else logits
            if class_of[name] == label:
                largest = torch.maximum(largest, logits)
                continue
            if name:
                state = _with_class(state, label, largest)
            label, largest = class_of[name], logits
    state = _with_class(state, label, largest)
    probability = (state.best - log_names).exp()
    return Decoded(
        labels=state.labels,
        score=(state.best - state.log_classes).exp(),
        probability=probability,
        margin=probability - (state.second - log_names).exp(),
        log_classes=state.log_classes,
    )


def _with_class(state: _Running | None, label: int, logits: Tensor) -> _Running:
    if state is None:
        labels = torch.full_like(logits, label, dtype=torch.int64)
        return _Running(labels, logits, torch.full_like(logits, -torch.inf), logits)
    better = logits > state.best  # strictly: equal scores go to the lower label, as argmax does
    return _Running(
        labels=torch.where(better, label, state.labels),
        best=torch.maximum(logits, state.best),
        second=torch.maximum(state.second, torch.minimum(logits, state.best)),
        log_classes=torch.logaddexp(state.log_classes, logits),
    )
