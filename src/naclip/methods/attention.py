"""Which tokens attend to which: a similarity, with or without the Gaussian of neighbours.

Shapes: B windows, H heads, T = 1 + h*w tokens with the class token first, d dimensions of a head.
"""

from __future__ import annotations

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


def attend(block: Block, x: Tensor, grid: tuple[int, int], method: Method) -> Tensor:
    """Input of a block -> output of its attention, projected: (B, T, D)."""
    normed = block.ln_1(x)
    qkv = block.attn.qkv(normed)
    if method.similarity == "self":  # MaskCLIP: each token attends to itself alone
        return block.attn.merge(qkv.v)
    if method.similarity in PAIRS:
        return block.attn.merge(_fused(qkv, grid, block.attn.scale, method))
    return block.attn.merge(attention_map(block, normed, qkv, grid, method) @ qkv.v)


def _fused(qkv: QKV, grid: tuple[int, int], scale: float, method: Method) -> Tensor:
    """The same as attention_map @ v, by torch's kernel that never holds the (T, T) maps."""
    omega = None
    if method.neighbours != "off":
        omega = neighbour_logits(qkv, grid, scale, method)
    return sum(  # type: ignore[return-value]
        F.scaled_dot_product_attention(
            getattr(qkv, left), getattr(qkv, right), qkv.v, attn_mask=omega, scale=scale
        )
        for left, right in PAIRS[method.similarity]
    )


def attention_map(
    block: Block, normed: Tensor, qkv: QKV, grid: tuple[int, int], method: Method
) -> Tensor:
    """Weight of each token (column) for each token (row): (B, H, T, T)."""
    scale = block.attn.scale
    if method.similarity == "gem":
        return _gem(normed, qkv, scale)
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


def _gem(normed: Tensor, qkv: QKV, scale: float) -> Tensor:
    """GEM: the mean over q, k, v of a self-self attention that is iterated once."""
    # The temperature follows the image: the mean length of its tokens, the class token included.
    t = (normed.norm(dim=-1).mean(dim=-1) * scale)[:, None, None, None]
    total = torch.zeros((), device=normed.device)
    for vectors in qkv:
        x = F.normalize(vectors, dim=-1)
        x = F.normalize((x @ x.transpose(-2, -1) * t).softmax(dim=-1) @ x, dim=-1)
        total = total + (x @ x.transpose(-2, -1) * t).softmax(dim=-1) / 3
    return total.to(normed.dtype)
