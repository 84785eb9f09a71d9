"""torch.compile over the frozen blocks, their weights laid out once for the CPU's products."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from naclip.clip.vision import Trace, VisionTower
from naclip.engines.eager import tokens_at_once
from naclip.errors import MissingExtraError


class Compiled:
    name = "compile"

    def __init__(self, tower: VisionTower) -> None:
        self.tower = tower
        if tower.proj.device.type == "cpu":
            _require_compiler()
        self._blocks = functools.cache(self._compiled)

    @property
    def tokens_at_once(self) -> int:
        return tokens_at_once(self.tower)

    @property
    def dtype(self) -> torch.dtype:
        return self.tower.proj.dtype

    def trace(self, pixels: Tensor, last: int) -> Trace:
        grid = (pixels.shape[-2] // self.tower.patch, pixels.shape[-1] // self.tower.patch)
        tokens = self.tower.embed(pixels)
        # Frozen weights must not be inference tensors: no_grad, not inference_mode.
        with torch.inference_mode(False), torch.no_grad():
            return Trace(tuple(self._blocks(last)(tokens.clone())), grid)

    def _compiled(self, last: int) -> Callable[[Tensor], list[Tensor]]:
        blocks = self.tower.blocks[:-1]
        kept = len(blocks) + 1 - last

        def run(tokens: Tensor) -> list[Tensor]:
            inputs = []
            for index, block in enumerate(blocks):
                if index >= kept:
                    inputs.append(tokens)
                tokens = block(tokens)
            return [*inputs, tokens]

        # Batches and grids differ from image to image; each kind is compiled once.
        return torch.compile(run, dynamic=False, options={"freezing": True})


def has_compiler() -> bool:
    from torch._inductor import exc
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except (exc.InvalidCxxCompiler, RuntimeError):
        return False
    return True


def _require_compiler() -> None:
    if not has_compiler():
        raise MissingExtraError(
            "engine compile needs a C++ compiler at run time and found none: "
            "install g++ or clang++, or use engine torch or openvino"
        )
