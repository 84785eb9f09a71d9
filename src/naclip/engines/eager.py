"""torch as it is: the reference of the other engines."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from naclip.clip.vision import Trace, VisionTower

MANY = 8 * 197  # 8 windows of ViT-B/16
FEW = 2 * 197


def tokens_at_once(tower: VisionTower) -> int:
    """On a CPU, layers of more tokens outgrow what the allocator keeps: it takes fresh pages for
    each of them, which is a fifth of the time."""
    return FEW if tower.proj.device.type == "cpu" else MANY


@dataclass(frozen=True)
class Eager:
    tower: VisionTower
    name = "torch"

    @property
    def tokens_at_once(self) -> int:
        return tokens_at_once(self.tower)

    @property
    def dtype(self) -> torch.dtype:
        return self.tower.proj.dtype

    def trace(self, pixels: Tensor, last: int) -> Trace:
        return self.tower.trace(pixels, last)
