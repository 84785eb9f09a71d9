"""Mean field (naclip.refiners.crf) on the CPU: PAMR's compiled step, and a softmax over names.

A step of PAMR and a message of the field are the same sum over neighbours under other weights. The
weights are 0 outside the image, so what lies in the buffers' margins does not count.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from naclip.kernels.compiled import announce, spread
from naclip.kernels.pamr import refine_planes, room
from naclip.settings import Refinement

FLOATS_AT_ONCE = 1 << 24  # that go through the softmax together: 64 MB


def refine(maps: Tensor, weights: Tensor, refinement: Refinement, strength: float) -> Tensor:
    """(names, h, w) logits and (neighbours, h, w) weights -> logits after all steps."""
    announce()
    names, height, width = maps.shape
    pad, stride = room(width, refinement.refine_dilations)
    wide = np.zeros((height, len(weights), stride - 2 * pad), np.float32)
    wide[..., :width] = weights.permute(1, 0, 2).numpy()
    dilations = np.array(refinement.refine_dilations)
    shares, messages = np.zeros((2, names, height, stride), np.float32)
    inside = (slice(None), slice(None), slice(pad, pad + width))
    q, message = torch.from_numpy(shares)[inside], torch.from_numpy(messages)[inside]

    def send(first: int, last: int) -> None:
        inner = (0, height, 0, width)
        refine_planes(shares, messages, first, last, wide, dilations, 1, pad, width, inner)

    rows = max(1, FLOATS_AT_ONCE // (names * width))
    field = maps.clone()
    for _ in range(refinement.refine_steps):
        for own, share in zip(field.split(rows, dim=1), q.split(rows, dim=1), strict=True):
            share.copy_(own.softmax(dim=0))
        spread(send, names)
        torch.add(maps, message, alpha=strength, out=field)
    return field
