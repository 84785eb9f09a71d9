"""How the last block(s) of CLIP's vision tower are read. The table of methods: naclip.settings."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from naclip.clip.vision import Trace, VisionTower
from naclip.methods.attention import attention_map
from naclip.methods.blocks import LastBlocks, last_tokens
from naclip.settings import Method


def read_patches(tower: VisionTower, trace: Trace, method: Method) -> Tensor:
    """What enters the last block(s) -> patch features (B, h*w, E), L2-normalised.

    The trace may hold more blocks than the method reads.
    """
    return read_by_each(tower, trace, [method])[0]


def read_by_each(tower: VisionTower, trace: Trace, methods: Sequence[Method]) -> list[Tensor]:
    """The same for several methods, which share what they have in common."""
    blocks = LastBlocks(tower, trace)
    return [tower.project(last_tokens(blocks, method)[:, 1:]) for method in methods]


def last_attention(tower: VisionTower, trace: Trace, method: Method) -> Tensor:
    """What each patch attends to in the last block, mean over heads: (B, h*w, h*w).

    Rows sum to 1 but for what goes to the class token, whose column is left out.
    """
    weights = attention_map(LastBlocks(tower, trace).opened(1), trace.grid, method)
    return (weights / weights.sum(dim=-1, keepdim=True)).mean(dim=1)[:, 1:, 1:]
