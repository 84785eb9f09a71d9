"""The frozen blocks as an OpenVINO graph, built from the tower's weights without tracing."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op
from torch import Tensor, nn

from naclip.clip.transformer import Block
from naclip.clip.vision import VisionTower


def graph(tower: VisionTower, last: int) -> ov.Model:
    """tokens (B, T, D) of any B and T -> the inputs of the `last` last blocks."""
    width = tower.proj.shape[0]
    tokens = op.parameter([-1, -1, width], np.float32, "tokens")
    blocks = tower.blocks
    x, kept = tokens, []
    for index, block in enumerate(blocks[:-1]):
        if index >= len(blocks) - last:
            kept.append(x)
        x = _block(x, block, width)
    return ov.Model([op.result(node) for node in (*kept, x)], [tokens], "frozen blocks")


def _block(x: Any, block: Block, width: int) -> Any:
    """Eq. (encoder-l1) to (encoder-l4), as naclip.clip.transformer has them."""
    x = op.add(x, _attention(_norm(x, block.ln_1), block, width))
    hidden = _linear(_norm(x, block.ln_2), block.mlp.c_fc.weight, block.mlp.c_fc.bias)
    if isinstance(block.mlp.gelu, nn.GELU):
        hidden = op.gelu(hidden, "erf")
    else:  # x * sigmoid(1.702 x)
        hidden = op.swish(hidden, op.constant(np.float32(1.702)))
    return op.add(x, _linear(hidden, block.mlp.c_proj.weight, block.mlp.c_proj.bias))


def _attention(x: Any, block: Block, width: int) -> Any:
    heads = block.attn.heads
    stacked = _linear(x, block.attn.in_proj_weight, block.attn.in_proj_bias)
    split = op.reshape(stacked, _shape(0, 0, 3, heads, width // heads), True)
    by_kind = op.transpose(split, _shape(2, 0, 3, 1, 4))  # (3, B, heads, T, d)
    q, k, v = (op.gather(by_kind, _whole(kind), _whole(0)) for kind in range(3))
    mixed = op.scaled_dot_product_attention(q, k, v)
    merged = op.reshape(op.transpose(mixed, _shape(0, 2, 1, 3)), _shape(0, 0, width), True)
    return _linear(merged, block.attn.out_proj.weight, block.attn.out_proj.bias)


def _linear(x: Any, weight: Tensor, bias: Tensor) -> Any:
    return op.add(op.matmul(x, _floats(weight), False, True), _floats(bias))


def _norm(x: Any, norm: nn.LayerNorm) -> Any:
    level = op.mvn(x, _shape(2), True, norm.eps, "inside_sqrt")
    return op.add(op.multiply(level, _floats(norm.weight)), _floats(norm.bias))


def _floats(tensor: Tensor) -> Any:
    return op.constant(tensor.detach().float().numpy(), shared_memory=True)


def _shape(*numbers: int) -> Any:
    return op.constant(np.array(numbers, np.int64))


def _whole(number: int) -> Any:
    return op.constant(np.int64(number))
