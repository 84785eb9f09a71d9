"""Pictures that explain a result: colours of maps, marked patches, rows of labelled tiles.

Drawn with Pillow alone, so that the demo and the docs need no plotting library.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Picture8 = NDArray[np.uint8]  # (H, W, 3)
BAR = 22  # height of a tile's caption
GAP = 6
INK, PAPER = (32, 34, 40), (255, 255, 255)


def heat(values: NDArray[np.floating], size: tuple[int, int] | None = None) -> Picture8:
    """Numbers -> viridis colours, from their smallest (dark) to their largest (bright)."""
    low, high = float(values.min()), float(values.max())
    grey = ((values - low) / max(high - low, 1e-12) * 255 + 0.5).astype(np.uint8)
    if size is not None:
        near = cv2.resize(grey, (size[1], size[0]), interpolation=cv2.INTER_NEAREST)
        grey = np.asarray(near, dtype=np.uint8)
    return np.asarray(cv2.applyColorMap(grey, cv2.COLORMAP_VIRIDIS)[..., ::-1])


def mixed(below: Picture8, above: Picture8, opacity: float) -> Picture8:
    blend = below.astype(np.float32) * (1 - opacity) + above.astype(np.float32) * opacity
    return np.asarray(blend + 0.5).astype(np.uint8)


def marked(image: Picture8, patch: tuple[int, int], grid: tuple[int, int]) -> Picture8:
    """The image with a frame around a patch (row, column)."""
    height, width = image.shape[:2]
    top, bottom = (round(height * (patch[0] + end) / grid[0]) for end in (0, 1))
    left, right = (round(width * (patch[1] + end) / grid[1]) for end in (0, 1))
    canvas = Image.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((left, top, right - 1, bottom - 1), outline=(255, 255, 255), width=4)
    draw.rectangle((left + 1, top + 1, right - 2, bottom - 2), outline=(220, 30, 30), width=2)
    return np.asarray(canvas)


def tiles(rows: Sequence[Sequence[tuple[str, Picture8]]]) -> Picture8:
    """Captioned pictures of one size in rows."""
    height, width = rows[0][0][1].shape[:2]
    columns = max(len(row) for row in rows)
    step_y, step_x = height + BAR + GAP, width + GAP
    canvas = Image.new("RGB", (columns * step_x - GAP, len(rows) * step_y - GAP), PAPER)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=14)
    for y, row in enumerate(rows):
        for x, (caption, picture) in enumerate(row):
            draw.text((x * step_x + 2, y * step_y + 2), caption, fill=INK, font=font)
            canvas.paste(Image.fromarray(picture), (x * step_x, y * step_y + BAR))
    return np.asarray(canvas)


def legend(entries: Sequence[tuple[str, str]], width: int) -> Picture8:
    """(name, #rrggbb) swatches, in as many lines as they need."""
    font = ImageFont.load_default(size=14)
    canvas = Image.new("RGB", (width, 24 * (1 + len(entries))), PAPER)
    draw = ImageDraw.Draw(canvas)
    x = y = 4
    for name, colour in entries:
        needed = 24 + int(draw.textlength(name, font=font)) + 14
        if x + needed > width and x > 4:
            x, y = 4, y + 24
        draw.rectangle((x, y + 2, x + 16, y + 16), fill=colour, outline=INK)
        draw.text((x + 24, y), name, fill=INK, font=font)
        x += needed
    return np.asarray(canvas)[: y + 24]
