"""The pictures of docs/methods.md, made by the code they explain (scripts/docs runs this)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import naclip
from naclip import pictures, vocabulary
from naclip.demo.run import SCALE, SIZE
from naclip.pictures import Picture8
from naclip.results import palette
from naclip.settings import METHODS
from naclip.synthetic import draw

OUT = Path(__file__).parent / "images"
SEED = 3
ZOOM = 1.0
PATCH = (4, 10)
COLUMNS = 4
WORDS = ["brick", "carpet", "sand", "ladybug", "couch", "fish", "umbrella"]


def main() -> None:
    segment = naclip.load("tiny")
    scene = draw(SEED, SIZE, scale=SCALE, split="held-out")
    settings = segment.model.defaults
    methods = [settings.updated(method=name).method for name in METHODS]
    maps = segment.attention(scene.image, settings.windowing, methods)
    grid = maps[0].shape[:2]
    shown: list[tuple[str, Picture8]] = [
        ("a patch", pictures.marked(big(scene.image), PATCH, grid))
    ]
    size = big(scene.image).shape[:2]
    for name, attention in zip(METHODS, maps, strict=True):
        warm = pictures.heat(attention[PATCH], (size[0], size[1]))
        shown.append((name, pictures.mixed(big(scene.image), warm, 0.7)))
    save("methods-attention.jpg", shown)

    words = vocabulary.parse(WORDS)
    colours = palette(len(WORDS), background=False)
    masks = [("the scene", big(scene.image))]
    for name in METHODS:
        labels = segment(scene.image, words, method=name, refine=False).labels
        masks.append((name, big(colours[labels])))
    save("methods-masks.png", masks)


def big(picture: Picture8) -> Picture8:
    height, width = picture.shape[:2]
    larger = Image.fromarray(picture).resize((int(width * ZOOM), int(height * ZOOM)), 0)
    return np.asarray(larger)


def save(name: str, shown: list[tuple[str, Picture8]]) -> None:
    rows = [shown[start : start + COLUMNS] for start in range(0, len(shown), COLUMNS)]
    Image.fromarray(pictures.tiles(rows)).save(OUT / name, quality=88)


if __name__ == "__main__":
    main()
