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
    labels: Tensor  # (H, W) int64, before the threshold
    best: Tensor  # (H, W) the best class's logit
    second: Tensor  # (H, W) the second class's logit; -inf where there is none
    log_names: Tensor  # (H, W) log of the sum over names of exp(logit)
    log_classes: Tensor  # (H, W) log of the sum over classes of exp(the class's largest logit)

    @property
    def probability(self) -> Tensor:
        """Of the best class, among all names: what the threshold is compared with."""
        return (self.best - self.log_names).exp()

    @property
    def margin(self) -> Tensor:
        """The best class's probability minus the second's."""
        return self.probability - (self.second - self.log_names).exp()

    @property
    def score(self) -> Tensor:
        """Of the best class, renormalised over classes: what users are told."""
        return (self.best - self.log_classes).exp()

    def thresholded(self, threshold: float, background: int = 0) -> Tensor:
        """Labels, with the background where the best class is less likely than the threshold."""
        if threshold <= 0:
            return self.labels
        return torch.where(self.probability < threshold, background, self.labels)


def decode(
    blocks: Iterable[tuple[int, Tensor]], class_of: tuple[int, ...], logit_scale: float
) -> Decoded:
    """Blocks of (first name, score maps (names, H, W)), in the order of the names."""
    state: Decoded | None = None
    label, largest = -1, torch.empty(0)  # of the class whose names are passing by
    log_names = torch.empty(0)
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
    return Decoded(state.labels, state.best, state.second, log_names, state.log_classes)


def _with_class(state: Decoded | None, label: int, logits: Tensor) -> Decoded:
    if state is None:
        labels = torch.full_like(logits, label, dtype=torch.int64)
        return Decoded(labels, logits, torch.full_like(logits, -torch.inf), logits, logits)
    better = logits > state.best  # strictly: equal scores go to the lower label, as argmax does
    return Decoded(
        labels=torch.where(better, label, state.labels),
        best=torch.maximum(logits, state.best),
        second=torch.maximum(state.second, torch.minimum(logits, state.best)),
        log_names=state.log_names,
        log_classes=torch.logaddexp(state.log_classes, logits),
    )
