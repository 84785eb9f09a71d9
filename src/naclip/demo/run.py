"""Draw a scene, segment it by words in several ways, and look inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from naclip import pictures
from naclip.evaluate.metric import confusion, scores
from naclip.pictures import Picture8
from naclip.pipeline import Segmenter
from naclip.results import Segmentation, palette
from naclip.settings import METHODS
from naclip.synthetic import CLASSES, Scene, draw
from naclip.vocabulary import Vocabulary

SHOWN = ("clip", "sclip", "naclip")
SIZE = (96, 128)  # units of the synthetic world: the tiny model's pixels
SCALE = 2  # pixels per unit; the resize by a half is an exact mean, by a quarter it would alias
ZOOM = 2  # of the pictures
HEAT_MAPS = 4  # classes whose heat maps are shown, largest first


@dataclass(frozen=True)
class Demo:
    scene: Scene
    words: Vocabulary
    results: Mapping[tuple[str, bool], Segmentation]  # by method and refined or not
    miou: Mapping[tuple[str, bool], float]
    attention: Mapping[str, NDArray[np.float32]]  # by method: (h, w, h, w)

    @property
    def best(self) -> Segmentation:
        return self.results["naclip", True]


def run(segmenter: Segmenter, seed: int) -> Demo:
    """All words of the synthetic world are asked for, those that the scene lacks as well."""
    scene = draw(seed, SIZE, scale=SCALE, split="held-out")
    words = Vocabulary(tuple(c.name for c in CLASSES), tuple(c.names for c in CLASSES))
    results, miou = {}, {}
    for method in SHOWN:
        for refined in (False, True):
            result = segmenter(scene.image, words, method=method, refine=refined)
            results[method, refined] = result
            miou[method, refined] = scores(
                confusion(scene.labels, result.labels, len(CLASSES))
            ).miou
    windowing = segmenter.model.defaults.windowing
    maps = segmenter.attention(scene.image, windowing, [METHODS[name] for name in SHOWN])
    return Demo(scene, words, results, miou, dict(zip(SHOWN, maps, strict=True)))


def draw_pictures(demo: Demo) -> dict[str, Picture8]:
    """File name -> picture."""
    return {
        "scene.png": zoomed(demo.scene.image),
        "masks.png": _masks(demo),
        "words.png": _words(demo),
        "heatmaps.png": _heat_maps(demo),
        "attention.png": _attention(demo),
    }


def zoomed(picture: Picture8) -> Picture8:
    return picture.repeat(ZOOM, axis=0).repeat(ZOOM, axis=1)


def _masks(demo: Demo) -> Picture8:
    colours = palette(len(demo.words.classes), background=False)
    first = [
        ("the scene", zoomed(demo.scene.image)),
        ("what is true", zoomed(colours[demo.scene.labels])),
        ("NACLIP over the scene", zoomed(demo.best.overlay())),
    ]
    rows: list[Sequence[tuple[str, Picture8]]] = [first]
    for refined in (False, True):
        kind = "refined" if refined else "raw"
        rows.append(
            [
                (
                    f"{name.upper()} {kind}: mIoU {demo.miou[name, refined]:.2f}",
                    zoomed(colours[demo.results[name, refined].labels]),
                )
                for name in SHOWN
            ]
        )
    return pictures.tiles(rows)


def _words(demo: Demo) -> Picture8:
    entries = [(name, colour) for name, colour, _ in demo.best.legend()]
    return pictures.legend(entries, width=3 * ZOOM * demo.scene.image.shape[1])


def _heat_maps(demo: Demo) -> Picture8:
    image = zoomed(demo.scene.image)
    row = []
    for name, _, share in demo.best.legend()[:HEAT_MAPS]:
        warmth = zoomed(pictures.heat(demo.best.heatmap(name)))
        row.append((f"{name}: {share:.0%}", pictures.mixed(image, warmth, 0.6)))
    return pictures.tiles([row[:2], row[2:]] if len(row) > 2 else [row])


def _attention(demo: Demo) -> Picture8:
    image = zoomed(demo.scene.image)
    rows = []
    for patch in three_patches(demo):
        row = [("a patch", pictures.marked(image, patch, demo.attention["naclip"].shape[:2]))]
        for name in SHOWN:
            weights = demo.attention[name][patch]
            shown = pictures.mixed(image, pictures.heat(weights, image.shape[:2]), 0.7)
            row.append((f"attends to, {name.upper()}", shown))
        rows.append(row)
    return pictures.tiles(rows)


def three_patches(demo: Demo) -> list[tuple[int, int]]:
    """A patch in the middle of each of the three largest things of the scene."""
    height, width = demo.attention["naclip"].shape[:2]
    labels = demo.scene.labels
    things = [c.index for c in CLASSES if c.is_thing]
    counts = {index: int((labels == index).sum()) for index in things}
    chosen = []
    for index in sorted(counts, key=lambda index: -counts[index])[:3]:
        y, x = np.nonzero(labels == index)
        if len(y):
            middle = np.argmin((y - np.median(y)) ** 2 + (x - np.median(x)) ** 2)
            row = int(y[middle] * height // labels.shape[0])
            chosen.append((row, int(x[middle] * width // labels.shape[1])))
    return chosen
