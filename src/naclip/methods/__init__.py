"""How the last block(s) of CLIP's vision tower are read. The table of methods: naclip.settings."""

from __future__ import annotations

from torch import Tensor

from naclip.clip.vision import Trace, VisionTower
from naclip.methods.attention import attention_map
from naclip.methods.blocks import last_tokens
from naclip.settings import Method


def read_patches(tower: VisionTower, trace: Trace, method: Method) -> Tensor:
    """What enters the last block(s) -> patch features (B, h*w, E), L2-normalised.

    The trace may hold more blocks than the method reads, so that one pass serves several methods.
    """
    return tower.project(last_tokens(tower, trace, method)[:, 1:])


def last_attention(tower: VisionTower, trace: Trace, method: Method) -> Tensor:
    """What each patch attends to in the last block, mean over heads: (B, h*w, h*w).

    Rows sum to 1 but for what goes to the class token, whose column is left out.
    """
    block = tower.blocks[-1]
    normed = block.ln_1(trace.inputs[-1])
    weights = attention_map(block, normed, block.attn.qkv(normed), trace.grid, method)
    return (weights / weights.sum(dim=-1, keepdim=True)).mean(dim=1)[:, 1:, 1:]
