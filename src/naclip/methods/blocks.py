"""What surrounds the attention in the last block(s).

reduced  the attention's output is the block's output (section 4.3 of the paper)
vanilla  residual and feed-forward as trained
dual     CLIP Surgery and GEM: a second path beside the original one through the last blocks
"""

from __future__ import annotations

from torch import Tensor

from naclip.clip.vision import Trace, VisionTower
from naclip.errors import SettingsError
from naclip.methods.attention import attend
from naclip.settings import Method


def last_tokens(tower: VisionTower, trace: Trace, method: Method) -> Tensor:
    """What enters the last block(s) -> tokens after them, before the projection: (B, T, D)."""
    if method.block == "dual":
        return _dual(tower, trace, method)
    x, block = trace.inputs[-1], tower.blocks[-1]
    attended = attend(block, x, trace.grid, method)
    return attended if method.block == "reduced" else block.feed_forward(x + attended)


def _dual(tower: VisionTower, trace: Trace, method: Method) -> Tensor:
    """The new path starts as the input of the first of the blocks and has no feed-forward.

    Each block adds to it what it attends to on the ORIGINAL path, which runs unchanged.
    """
    if method.depth > len(tower.blocks):
        raise SettingsError(
            f"depth {method.depth} of method {method.name!r} exceeds the model's blocks: "
            f"use a depth of at most {len(tower.blocks)}"
        )
    originals = trace.inputs[-method.depth :]
    path = originals[0]
    for block, original in zip(tower.blocks[-len(originals) :], originals, strict=True):
        path = path + attend(block, original, trace.grid, method)
    return path
