"""Which tokens attend to which: a similarity, with or without the Gaussian of neighbours.

Shapes: B windows, H heads, T = 1 + h*w tokens with the class token first, d dimensions of a head.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from naclip.clip.transformer import QKV, Block
from naclip.methods.neighbourhood import gaussian
from naclip.settings import Method

PAIRS: dict[str, list[tuple[str, str]]] = {
    "qk": [("q", "k")],  # CLIP
    "kk": [("k", "k")],  # NACLIP, Eq. (final-self-attention)
    "qq": [("q", "q")],  # ClearCLIP
    "vv": [("v", "v")],  # CLIP Surgery
    "qq+kk": [("q", "q"), ("k", "k")],  # SCLIP: the two maps add up, rows sum to 2
}


class Opened(NamedTuple):
    """A block over its input, as far as all methods read it alike: several can share it."""

    block: Block
    normed: Tensor  # (B, T, D)
    qkv: QKV


def opened(block: Block, x: Tensor) -> Opened:
    normed = block.ln_1(x)
    return Opened(block, normed, block.attn.qkv(normed))


def attend(over: Opened, grid: tuple[int, int], method: Method) -> Tensor:
    """Output of a block's attention, projected: (B, T, D)."""
    return over.block.attn.merge(_attended(over, grid, method))


def _attended(over: Opened, grid: tuple[int, int], method: Method) -> Tensor:
    """The same as attention_map @ v, by torch's kernel that never holds the (T, T) maps."""
    qkv, scale = over.qkv, over.block.attn.scale
    if method.similarity == "self":  # MaskCLIP: each token attends to itself alone
        return qkv.v
    if method.similarity == "none":
        return attention_map(over, grid, method) @ qkv.v
    if method.similarity == "gem":
        t = _temperature(over)
        return sum(_self_attention(_iterated(x, t), qkv.v, t) for x in qkv) / 3  # type: ignore[return-value]
    omega = None
    if method.neighbours != "off":
        omega = neighbour_logits(qkv, grid, scale, method)
    return sum(  # type: ignore[return-value]
        F.scaled_dot_product_attention(
            getattr(qkv, left), getattr(qkv, right), qkv.v, attn_mask=omega, scale=scale
        )
        for left, right in PAIRS[method.similarity]
    )


def attention_map(over: Opened, grid: tuple[int, int], method: Method) -> Tensor:
    """Weight of each token (column) for each token (row): (B, H, T, T)."""
    qkv, scale = over.qkv, over.block.attn.scale
    if method.similarity == "gem":
        t = _temperature(over)
        steps = (_iterated(x, t) for x in qkv)
        return sum((x * t @ x.transpose(-2, -1)).softmax(dim=-1) for x in steps) / 3  # type: ignore[return-value]
    if method.similarity == "self":
        return torch.eye(qkv.v.shape[2], device=qkv.v.device).expand(*qkv.v.shape[:3], -1)
    omega = neighbour_logits(qkv, grid, scale, method)
    if method.similarity == "none":  # Eq. (og), "Neighbourhood Only"
        return omega.softmax(dim=-1).expand(*qkv.v.shape[:3], -1)
    maps = []
    for left, right in PAIRS[method.similarity]:
        x, y = getattr(qkv, left), getattr(qkv, right)
        sim = x @ y.transpose(-2, -1) * scale  # Eq. (orig-sa-l2)
        maps.append((sim + omega).softmax(dim=-1))  # Eq. (new-self-attention)
    return maps[0] if len(maps) == 1 else maps[0] + maps[1]


def neighbour_logits(qkv: QKV, grid: tuple[int, int], scale: float, method: Method) -> Tensor:
    """omega as it is added to the logits; broadcasts to (B, H, T, T)."""
    q, k = qkv.q, qkv.k
    if method.neighbours == "off":
        return q.new_zeros(1, 1, 1, q.shape[2])
    omega = gaussian(grid, method.sigma, q.device).to(q.dtype)[None, None]
    if method.neighbours == "gaussian":
        return omega
    # Where omega stands alone, the paper's program scales it by the image's mean of |q_i||k_j|
    # over heads and all pairs of tokens, / sqrt(d); the published "Neighbourhood Only" row comes
    # from the program, not from Eq. (og).
    lengths = (q.norm(dim=-1).mean(dim=-1) * k.norm(dim=-1).mean(dim=-1)).mean(dim=1)
    return omega * (lengths * scale)[:, None, None, None]


# GEM: the mean over q, k, v of an attention of each with itself that is iterated once.


def _temperature(over: Opened) -> Tensor:
    """It follows the image: the mean length of its tokens, the class token included."""
    lengths = over.normed.norm(dim=-1).mean(dim=-1)
    return (lengths * over.block.attn.scale)[:, None, None, None]


def _iterated(vectors: Tensor, t: Tensor) -> Tensor:
    x = F.normalize(vectors, dim=-1)
    return F.normalize(_self_attention(x, x, t), dim=-1)


def _self_attention(x: Tensor, values: Tensor, t: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x * t, x, values, scale=1.0)
