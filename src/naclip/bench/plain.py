"""The method as it is usually written: what `naclip bench` compares with.

One window at a time; score maps of all names at the window's size, summed up at the resized
image's size, then at the original size; PAMR by convolutions that pick one neighbour each; softmax
over all names, a maximum over synonyms, argmax. Only layers' weights are shared with ours.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from naclip.clip.transformer import Block
from naclip.clip.vision import VisionTower
from naclip.windows import Plan

SIGMA = 5.0
STEPS, DILATIONS = 10, (8, 16)
LOGIT_SCALE = 40.0


def segment(
    tower: VisionTower, pixels: Tensor, plan: Plan, text: Tensor, refine: bool
) -> tuple[Tensor, Tensor]:
    """(3, h, w) -> labels and probabilities at the original size; one name a class."""
    height, width = plan.window
    scores = (
        window_scores(tower, pixels[None, :, top : top + height, left : left + width], text)
        for top in plan.y.starts
        for left in plan.x.starts
    )
    return after_transformer(scores, pixels, plan, len(text), refine)


def window_scores(tower: VisionTower, window: Tensor, text: Tensor) -> Tensor:
    """(1, 3, 224, 224) -> (1, names, 14, 14)"""
    x = tower.embed(window)
    for block in tower.blocks[:-1]:
        x = block_as_trained(block, x)
    h, w = window.shape[-2] // tower.patch, window.shape[-1] // tower.patch
    tokens = last_block(tower.blocks[-1], x, (h, w))
    features = F.normalize(tower.ln_post(tokens)[:, 1:] @ tower.proj, dim=-1)
    return (features @ text.T).permute(0, 2, 1).reshape(1, -1, h, w)


def block_as_trained(block: Block, x: Tensor) -> Tensor:
    q, k, v = qkv(block, x)
    attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + F.linear(attended, block.attn.out_proj.weight, block.attn.out_proj.bias)
    hidden = F.linear(block.ln_2(x), block.mlp.c_fc.weight, block.mlp.c_fc.bias)
    hidden = hidden * torch.sigmoid(1.702 * hidden)
    return x + F.linear(hidden, block.mlp.c_proj.weight, block.mlp.c_proj.bias)


def qkv(block: Block, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    attention = block.attn
    stacked = F.linear(block.ln_1(x), attention.in_proj_weight, attention.in_proj_bias)
    q, k, v = stacked.view(*x.shape[:2], 3, attention.heads, -1).permute(2, 0, 3, 1, 4)
    return q, k, v


def last_block(block: Block, x: Tensor, grid: tuple[int, int]) -> Tensor:
    _, k, v = qkv(block, x)
    weights = (
        k @ k.transpose(-2, -1) * k.shape[-1] ** -0.5 + neighbours(grid).to(k.device)
    ).softmax(dim=-1)
    attended = (weights @ v).transpose(1, 2).flatten(2)
    return F.linear(attended, block.attn.out_proj.weight, block.attn.out_proj.bias)


def neighbours(grid: tuple[int, int]) -> Tensor:
    """The Gaussian around each patch; made anew for each window."""
    h, w = grid
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    y, x = y.reshape(-1), x.reshape(-1)
    squared = (y[:, None] - y) ** 2 + (x[:, None] - x) ** 2
    return F.pad(torch.exp(-squared / (2 * SIGMA**2)), (1, 0, 1, 0))


def after_transformer(
    scores: object, pixels: Tensor, plan: Plan, names: int, refine: bool
) -> tuple[Tensor, Tensor]:
    h, w = pixels.shape[-2:]
    total, count = pixels.new_zeros(1, names, h, w), pixels.new_zeros(1, 1, h, w)
    height, width = plan.window
    corners = [(top, left) for top in plan.y.starts for left in plan.x.starts]
    for (top, left), grid in zip(corners, scores, strict=True):  # type: ignore[call-overload]
        up = F.interpolate(grid, size=plan.window, mode="bilinear")
        total += F.pad(up, (left, w - left - width, top, h - top - height))
        count[..., top : top + height, left : left + width] += 1
    size = (plan.y.original, plan.x.original)
    logits = F.interpolate(total / count, size=size, mode="bilinear")
    if refine:
        image = F.interpolate(pixels[None], size=size, mode="bilinear")
        logits = pamr(image, logits)
    probabilities = (logits[0] * LOGIT_SCALE).softmax(dim=0)
    best, labels = probabilities.max(dim=0)
    return labels, best


def pamr(image: Tensor, mask: Tensor) -> Tensor:
    around = picked(image, centre=False)  # (1, 3, 16, H, W)
    std = picked(image, centre=True).std(dim=2, keepdim=True)
    logits = -(around - image[:, :, None]).abs() / (1e-8 + 0.1 * std)
    affinity = logits.mean(dim=1, keepdim=True).softmax(dim=2)
    for _ in range(STEPS):
        mask = (picked(mask, centre=False) * affinity).sum(dim=2)
    return mask


def picked(maps: Tensor, centre: bool) -> Tensor:
    """(1, C, H, W) -> (1, C, neighbours, H, W) by convolutions with a single one each."""
    cells = [cell for cell in range(9) if centre or cell != 4]
    kernels = nn.functional.one_hot(torch.tensor(cells, device=maps.device), 9)
    kernels = kernels.to(maps.dtype).view(-1, 1, 3, 3)
    single = maps.flatten(0, 1)[:, None]
    found = [
        F.conv2d(F.pad(single, (d,) * 4, mode="replicate"), kernels, dilation=d) for d in DILATIONS
    ]
    return torch.cat(found, dim=1)[None]
