"""torch as it is: the reference of the other engines."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from naclip.clip.vision import Trace, VisionTower


@dataclass(frozen=True)
class Eager:
    tower: VisionTower
    name = "torch"

    @property
    def dtype(self) -> torch.dtype:
        return self.tower.proj.dtype

    def trace(self, pixels: Tensor, last: int) -> Trace:
        return self.tower.trace(pixels, last)
