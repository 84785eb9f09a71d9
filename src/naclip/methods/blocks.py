"""What surrounds the attention in the last block(s).

reduced  the attention's output is the block's output (section 4.3 of the paper)
vanilla  residual and feed-forward as trained
dual     CLIP Surgery and GEM: a second path beside the original one through the last blocks
"""

from __future__ import annotations

from torch import Tensor

from naclip.clip.vision import Trace, VisionTower
from naclip.errors import SettingsError
from naclip.methods.attention import Opened, attend, opened
from naclip.settings import Method


class LastBlocks:
    """The last blocks over one trace; each is opened once, whoever reads it."""

    def __init__(self, tower: VisionTower, trace: Trace) -> None:
        self.tower = tower
        self.trace = trace
        self._opened: dict[int, Opened] = {}

    def opened(self, back: int) -> Opened:
        """The block that is so many from the end; 1 is the last."""
        if back not in self._opened:
            self._opened[back] = opened(self.tower.blocks[-back], self.trace.inputs[-back])
        return self._opened[back]


def last_tokens(blocks: LastBlocks, method: Method) -> Tensor:
    """What enters the last block(s) -> tokens after them, before the projection: (B, T, D)."""
    if method.block == "dual":
        return _dual(blocks, method)
    last = blocks.opened(1)
    attended = attend(last, blocks.trace.grid, method)
    if method.block == "reduced":
        return attended
    return last.block.feed_forward(blocks.trace.inputs[-1] + attended)


def _dual(blocks: LastBlocks, method: Method) -> Tensor:
    """The new path starts as the input of the first of the blocks and has no feed-forward.

    Each block adds to it what it attends to on the ORIGINAL path, which runs unchanged.
    """
    if method.depth > len(blocks.tower.blocks):
        raise SettingsError(
            f"depth {method.depth} of method {method.name!r} exceeds the model's blocks: "
            f"use a depth of at most {len(blocks.tower.blocks)}"
        )
    path = blocks.trace.inputs[-method.depth]
    for back in range(method.depth, 0, -1):
        path = path + attend(blocks.opened(back), blocks.trace.grid, method)
    return path
