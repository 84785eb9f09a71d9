"""CLIP's vision transformer, opened before its last blocks.

A method of segmentation reads the last block(s) in its own way and leaves the others as they are,
so the tower runs up to where they begin (`trace`) and hands over what enters them. The methods
(naclip.methods) do the rest and come back for the projection (`project`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from naclip.clip.shape import ClipShape
from naclip.clip.transformer import Block, LayerNorm, Transformer, drawn


@dataclass(frozen=True)
class Trace:
    """What enters each of the last blocks, in order; tokens are (B, 1 + h*w, D), class first."""

    inputs: tuple[Tensor, ...]
    grid: tuple[int, int]  # patches (h, w)


class VisionTower(nn.Module):
    def __init__(self, shape: ClipShape) -> None:
        super().__init__()
        width = shape.vision.width
        self.patch = shape.patch
        self.trained_grid = shape.grid
        self.conv1 = nn.Conv2d(3, width, shape.patch, stride=shape.patch, bias=False)
        self.class_embedding = drawn(width, std=width**-0.5)
        self.positional_embedding = drawn(shape.grid**2 + 1, width, std=width**-0.5)
        self.ln_pre = LayerNorm(width)
        self.transformer = Transformer(
            width, shape.vision.layers, shape.vision.heads, shape.vision.hidden, shape.activation
        )
        self.ln_post = LayerNorm(width)
        self.proj = drawn(width, shape.embedding, std=width**-0.5)

    @property
    def blocks(self) -> list[Block]:
        return list(self.transformer.resblocks)  # type: ignore[arg-type]

    def embed(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) normalised -> tokens that enter the first block."""
        patches = self.conv1(pixels)  # (B, D, h, w); a rest smaller than a patch falls off
        grid = (patches.shape[-2], patches.shape[-1])
        tokens = patches.flatten(2).transpose(1, 2)
        cls = self.class_embedding.expand(tokens.shape[0], 1, -1)
        return self.ln_pre(torch.cat([cls, tokens], dim=1) + self.positions(grid))

    def positions(self, grid: tuple[int, int]) -> Tensor:
        """Position embeddings for a grid (h, w), interpolated unless it is the training grid.

        The test is on the grid and not on the count of tokens: 112x448 pixels have 196 patches of
        16 as 224x224 have, and the paper's program then leaves the positions of another shape.
        """
        side = self.trained_grid
        if grid == (side, side):
            return self.positional_embedding
        cls, patches = self.positional_embedding[:1], self.positional_embedding[1:]
        square = patches.float().T.reshape(1, -1, side, side)
        # The 0.1 and the fixed scale are of the checkpoints' own recipe (DINO's): with size=
        # instead, the sampling points move and the embedding differs by 7% at 21x31.
        resized = F.interpolate(
            square,
            scale_factor=((grid[0] + 0.1) / side, (grid[1] + 0.1) / side),
            mode="bicubic",
            align_corners=False,
            recompute_scale_factor=False,
        )
        return torch.cat([cls, resized.flatten(2)[0].T.to(cls.dtype)])

    def trace(self, pixels: Tensor, last: int = 1) -> Trace:
        """Run the frozen blocks; keep what enters each of the `last` ones. The last is not run."""
        tokens = self.embed(pixels)
        blocks = self.blocks
        first_kept = max(0, len(blocks) - last)
        inputs: list[Tensor] = []
        for index, block in enumerate(blocks[:-1]):
            if index >= first_kept:
                inputs.append(tokens)
            tokens = block(tokens)
        grid = (pixels.shape[-2] // self.patch, pixels.shape[-1] // self.patch)
        return Trace((*inputs, tokens), grid)

    def project(self, tokens: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, E), L2-normalised in fp32."""
        return F.normalize((self.ln_post(tokens) @ self.proj).float(), dim=-1)

    def class_token(self, trace: Trace) -> Tensor:
        """CLIP's own image embedding (B, E): the class token, the last block as trained."""
        return self.project(self.blocks[-1](trace.inputs[-1])[:, :1])[:, 0]

    def forward(self, pixels: Tensor) -> Tensor:
        return self.class_token(self.trace(pixels))
