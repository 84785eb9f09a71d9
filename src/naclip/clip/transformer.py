"""The residual attention block that both of CLIP's towers are made of.

Names of parameters are those of OpenAI's checkpoints, so their state dicts load as they are.
Shapes: B images or texts, T tokens, D width, H heads, d = D / H.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class QKV(NamedTuple):
    q: Tensor  # (B, H, T, d)
    k: Tensor
    v: Tensor


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """F.linear. On a CPU in fp32 by oneDNN, which torch itself uses in bf16 only.

    The BLAS that torch uses instead reaches 40% of its speed on AMD's CPUs and the same on Intel's.
    """
    if (
        x.device.type != "cpu"
        or x.dtype != torch.float32
        or torch.is_grad_enabled()  # the operator has no gradient
        or torch.compiler.is_compiling()
        or not torch.backends.mkldnn.is_available()
    ):
        return F.linear(x, weight, bias)
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def drawn(*size: int, std: float) -> nn.Parameter:
    """A parameter before training; without values on the meta device, where weights follow: to
    multiply there, torch imports its compiler, which takes longer than loading the weights."""
    empty = torch.empty(*size)
    return nn.Parameter(empty if empty.is_meta else torch.randn(*size) * std)


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class LayerNorm(nn.LayerNorm):
    """LayerNorm computed in fp32 whatever the precision of the model."""

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.weight.float(), self.bias.float()
        return F.layer_norm(x.float(), self.normalized_shape, weight, bias, self.eps).to(x.dtype)


class QuickGELU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, type[nn.Module]] = {"quick_gelu": QuickGELU, "gelu": nn.GELU}


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = Linear(width, width)
        if not self.in_proj_weight.is_meta:  # as drawn(), in the order that seeds rely on
            nn.init.normal_(self.in_proj_weight, std=width**-0.5)

    @property
    def scale(self) -> float:
        """s = d^-1/2 of Eq. (orig-sa-l2)."""
        return float((self.out_proj.in_features // self.heads) ** -0.5)

    def qkv(self, x: Tensor) -> QKV:
        """Eq. (orig-sa-l1), split into heads."""
        B, T, _ = x.shape
        stacked = linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = stacked.view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return QKV(q, k, v)

    def merge(self, heads_BHTd: Tensor) -> Tensor:
        """Eq. (orig-sa-l4): heads side by side, then W^o."""
        return self.out_proj(heads_BHTd.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, causal: bool = False) -> Tensor:
        q, k, v = self.qkv(x)
        return self.merge(F.scaled_dot_product_attention(q, k, v, is_causal=causal))


class MLP(nn.Sequential):
    def __init__(self, width: int, hidden: int, activation: str) -> None:
        super().__init__()
        self.c_fc = Linear(width, hidden)
        self.gelu = ACTIVATIONS[activation]()
        self.c_proj = Linear(hidden, width)


class Block(nn.Module):
    """Eq. (encoder-l1) to (encoder-l4)."""

    def __init__(self, width: int, heads: int, hidden: int, activation: str) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = LayerNorm(width)
        self.mlp = MLP(width, hidden, activation)

    def feed_forward(self, x: Tensor) -> Tensor:
        return x + self.mlp(self.ln_2(x))

    def forward(self, x: Tensor, causal: bool = False) -> Tensor:
        return self.feed_forward(x + self.attn(self.ln_1(x), causal))


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, hidden: int, activation: str) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(
            Block(width, heads, hidden, activation) for _ in range(layers)
        )
