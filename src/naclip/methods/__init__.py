"""How the last block(s) of CLIP's vision tower are read. The table of methods: naclip.settings."""

from __future__ import annotations

from torch import Tensor

from naclip.clip.vision import Trace, VisionTower
from naclip.methods.blocks import last_tokens
from naclip.settings import Method


def read_patches(tower: VisionTower, trace: Trace, method: Method) -> Tensor:
    """What enters the last block(s) -> patch features (B, h*w, E), L2-normalised.

    The trace may hold more blocks than the method reads, so that one pass serves several methods.
    """
    return tower.project(last_tokens(tower, trace, method)[:, 1:])
