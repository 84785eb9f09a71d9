"""Refiners beside PAMR (naclip.refine): for looks, not for the paper's protocol.

They work on the score maps at the original size, or at 2^18 pixels of it where it is larger: the
image that guides them is no sharper than what the model saw, and their cost ends there. What they
return is again a linear map to the original size (naclip.windows), so that any image is decoded
like one without refinement: bilinear, a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from naclip import refine
from naclip.refiners import crf, guided
from naclip.settings import Refinement
from naclip.windows import Stitched, bilinear

PIXELS = 1 << 18  # 512 x 512; 150 names at this size are 157 MB

# (maps (names, h, w) as logits, guide (3, h, w), refinement) -> maps; may work in place
REFINERS: dict[str, Callable[[Tensor, Tensor, Refinement], Tensor]] = {
    "guided": guided.refine,
    "crf": crf.refine,
}


def working_size(size: tuple[int, int]) -> tuple[int, int]:
    """(height, width) at which scores of an image of this size are refined."""
    height, width = size
    factor = min(1.0, (PIXELS / (height * width)) ** 0.5)
    return max(1, int(height * factor)), max(1, int(width * factor))


def refined(
    stitched: Stitched, pixels: Tensor, refinement: Refinement, logit_scale: float
) -> Stitched:
    """The same names' scores, refined; `pixels` (3, h, w): the image as the model saw it."""
    size = working_size(stitched.size)
    (down_y, down_x), (up_y, up_x) = (
        [_stretched(a, b, stitched.a_y) for a, b in zip(source, target, strict=True)]
        for source, target in ((stitched.size, size), (size, stitched.size))
    )
    small = Stitched(stitched.cells_NYX * logit_scale, down_y @ stitched.a_y, down_x @ stitched.a_x)
    logits = small.maps(0, small.names)
    logits = REFINERS[refinement.refiner](logits, refine.guidance(pixels, size), refinement)
    return Stitched(logits.div_(logit_scale), up_y, up_x)


def notes(size: tuple[int, int], refinement: Refinement) -> tuple[str, ...]:
    """What a report says of an image of this size."""
    height, width = working_size(size)
    if not refinement.refine or refinement.refiner == "pamr" or (height, width) == size:
        return ()
    return (f"refined by {refinement.refiner} at {width}x{height} pixels, then stretched",)


def _stretched(size_in: int, size_out: int, like: Tensor) -> Tensor:
    """The matrix (out, in) that stretches an axis; the identity where nothing changes."""
    return torch.from_numpy(bilinear(size_in, size_out)).to(like.device, like.dtype)
