"""Synthetic scenes: seeded pictures with captions and pixel-exact labels, drawn at any size.

    scene = draw(seed=3, size=(96, 128), scale=4, split="held-out")
    scene.image     # (384, 512, 3) uint8 RGB
    scene.labels    # (384, 512) uint8, an index into CLASSES
    scene.caption   # "a photo of a red zebra and an umbrella on grass and sky."

`size` is in units, the pixels of the tiny model's training resolution; `scale` is the number of
drawn pixels per unit. The same seed and size give the same scene at every scale.
"""

from naclip.synthetic.classes import (
    BACKGROUNDS,
    CLASSES,
    COLOUR_NAMES,
    COLOURS,
    THINGS,
    SceneClass,
    held_out,
    palette,
)
from naclip.synthetic.layout import Layout, Region, Split, Thing
from naclip.synthetic.scene import Scene, draw

__all__ = [
    "BACKGROUNDS",
    "CLASSES",
    "COLOURS",
    "COLOUR_NAMES",
    "THINGS",
    "Layout",
    "Region",
    "Scene",
    "SceneClass",
    "Split",
    "Thing",
    "draw",
    "held_out",
    "palette",
]
