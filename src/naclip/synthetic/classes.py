"""The words of the synthetic world: materials that fill regions, things that stand on them.

A thing has a texture of its own and comes in every colour, so that what it is and what colour it
has are independent, and combinations can be held out (`held_out`).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SceneClass:
    """One class of the world. `names` are usable alone in a caption; `shy` names never are:
    captions use them only beside other words, which shows whether a word learned in company
    works alone."""

    index: int
    names: tuple[str, ...]
    shy: tuple[str, ...]
    is_thing: bool

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def all_names(self) -> tuple[str, ...]:
        return self.names + self.shy


# The order is the label value and the dispatch index of the painters.
_MATERIALS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("sky", "clouds"), ("heavens",)),
    (("water", "sea"), ("lake",)),
    (("grass", "lawn"), ("meadow",)),
    (("sand", "beach"), ("dune",)),
    (("snow",), ("ice",)),
    (("brick", "bricks"), ("masonry",)),
    (("wood", "planks"), ("timber",)),
    (("stone", "cobblestones"), ("rocks",)),
    (("soil", "dirt"), ("mud",)),
    (("carpet", "rug"), ()),
    (("road", "asphalt"), ("street",)),
)

_THINGS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("zebra",), ()),
    (("ladybug",), ("ladybird",)),
    (("fish",), ()),
    (("flower", "flowers"), ("bouquet",)),
    (("house", "building"), ("home",)),
    (("tree",), ()),
    (("chessboard",), ("checkerboard",)),
    (("sweater", "jumper"), ("pullover",)),
    (("basket",), ("hamper",)),
    (("strawberry",), ()),
    (("couch",), ("sofa",)),
    (("turtle",), ("tortoise",)),
    (("umbrella",), ("parasol",)),
    (("butterfly",), ("moth",)),
)

CLASSES: tuple[SceneClass, ...] = tuple(
    SceneClass(index, names, shy, index >= len(_MATERIALS))
    for index, (names, shy) in enumerate(_MATERIALS + _THINGS)
)
BACKGROUNDS: tuple[SceneClass, ...] = tuple(c for c in CLASSES if not c.is_thing)
THINGS: tuple[SceneClass, ...] = tuple(c for c in CLASSES if c.is_thing)

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (208, 38, 42),
    "orange": (240, 128, 28),
    "yellow": (240, 204, 44),
    "green": (52, 158, 62),
    "blue": (40, 92, 206),
    "purple": (128, 56, 176),
    "pink": (240, 132, 178),
    "brown": (132, 82, 46),
}
COLOUR_NAMES: tuple[str, ...] = tuple(COLOURS)

HELD_OUT_MODULUS = 5


def held_out(thing: int, colour: int, background: int) -> bool:
    """Is this combination kept out of training? `thing` and `background` are class indices.

    One residue in five: every thing, every colour and every background is seen in training, every
    pair of them too, but one triple in five never; each (thing, background) has such a colour.
    """
    return (3 * thing + 2 * background + colour) % HELD_OUT_MODULUS == 0


def palette() -> npt.NDArray[np.uint8]:
    """A colour for each class, for overlays and legends. # (classes, 3) RGB"""
    steps = np.arange(len(CLASSES))
    hue = (steps * 0.381966) % 1.0
    light = np.where(steps % 2 == 0, 0.92, 0.68)
    k = (np.array([5.0, 3.0, 1.0])[None, :] + hue[:, None] * 6.0) % 6.0
    rgb = light[:, None] * (1 - 0.75 * np.clip(np.minimum(k, 4 - k), 0, 1))
    colours: npt.NDArray[np.uint8] = (rgb * 255).astype(np.uint8)
    return colours
