"""Arrays as PNG files, and VOC's palette."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray


def png(pixels: NDArray[Any], palette: NDArray[np.uint8] | None = None) -> bytes:
    """(H, W) of 8 or 16 bits, or (H, W, 3); palette: (256, 3) colours of 8-bit values."""
    from PIL import Image

    image = Image.fromarray(pixels)
    if palette is not None:
        image.putpalette(palette.tobytes())
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def voc_palette() -> NDArray[np.uint8]:
    """(256, 3) The bits of a number go to red, green and blue in turn, each from its top bit on."""
    colours = np.zeros((256, 3), np.uint8)
    numbers = np.arange(256)
    for bit in range(8):
        colours[:, bit % 3] |= ((numbers >> bit & 1) << (7 - bit // 3)).astype(np.uint8)
    return colours
