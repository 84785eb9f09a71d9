"""Label maps as exports meet them: holes, one-pixel regions, touching classes, nothing at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image

from naclip.export.formats import find
from naclip.export.item import VOID, Classes, Item, Labels
from naclip.export.options import EVERYTHING, Options
from naclip.export.saving import Export

CLASSES = Classes(("background", "road", 'a "b" & <c>', "tree"), has_background=True)
UNHURRIED = settings(max_examples=50, deadline=None)  # first calls import libraries
MANY = Classes(tuple(f"class {number}" for number in range(1000)))


@st.composite
def items(draw: st.DrawFn, classes: Classes = CLASSES) -> Item:
    """Noise; areas with many holes of a pixel; rings, which are holes in holes; all void."""
    height, width = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    values = st.integers(0, len(classes.names) - 1) | st.just(VOID)
    kind = draw(st.sampled_from(["noise", "two", "holes", "rings", "void"]))
    if kind == "noise":
        labels = draw(arrays(np.uint16, (height, width), elements=values, fill=st.nothing()))
    elif kind == "two":  # many touching corners
        where = draw(arrays(np.bool_, (height, width), fill=st.nothing()))
        labels = np.where(where, *draw(arrays(np.uint16, 2, elements=values)))
    elif kind == "holes":  # every second pixel of every second row may be one
        height, width = height + 4, width + 4
        labels = np.full((height, width), draw(st.integers(1, len(classes.names) - 1)), np.uint16)
        inner = labels[1:-1:2, 1:-1:2]
        inner[draw(arrays(np.bool_, inner.shape, fill=st.nothing()))] = draw(values)
    elif kind == "rings":
        y, x = np.mgrid[:height, :width]
        inwards = np.minimum(np.minimum(y, height - 1 - y), np.minimum(x, width - 1 - x))
        labels = draw(arrays(np.uint16, 6, elements=values, fill=st.nothing()))[inwards]
    else:
        labels = np.full((height, width), VOID)
    return item(labels, classes)


def any_items() -> st.SearchStrategy[Item]:
    return items(CLASSES) | items(MANY)


def numbers(made: Item) -> NDArray[np.int64]:
    """1, 2, 3... for the classes that were asked for, 0 for background and void."""
    labels = made.labels.astype(np.int64) - made.classes.first + 1
    return np.where(made.labels == VOID, 0, labels)


def item(labels: NDArray[np.integer], classes: Classes = CLASSES, name: str = "a/b.jpg") -> Item:
    """Scores and picture follow from the place."""
    height, width = labels.shape
    scores = np.linspace(0.1, 0.9, labels.size, dtype=np.float32).reshape(labels.shape)
    image = np.zeros((height, width, 3), np.uint8)
    return Item(labels.astype(np.uint16), classes, name, scores=scores, image=image)


def picture() -> Labels:
    """A ring of 1 with 2s in its hole, a lone 2, 3s that touch at a corner, a void edge."""
    labels = np.zeros((16, 24), np.uint16)
    labels[2:10, 2:10] = 1
    labels[4:8, 4:8] = 0
    labels[5:7, 5:7] = 2
    labels[1, 20] = 2
    labels[12:14, 10:12] = labels[14:16, 12:14] = 3
    labels[:, 23] = VOID
    return labels


def pictures() -> list[Item]:
    """Three images, one of them all void, and their files in images/."""
    return [
        item(picture(), name="city/one.png"),
        item(np.full((5, 7), VOID), name="two.png"),
        item(np.roll(picture(), 3, 1), name="city/three.png"),
    ]


def exported(
    made: list[Item], format: str, folder: Path, options: Options = EVERYTHING, images: str = ""
) -> Path:
    """images: where the tool looks for the pictures, if it needs them."""
    with Export(folder, find(format), made[0].classes, options) as export:
        for one in made:
            export.add(one)
            if images and one.image is not None:
                path = folder / images / one.name
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(one.image).save(path)
    return folder
