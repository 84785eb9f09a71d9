"""The pictures of docs/how-it-works.md, made by the code they explain (scripts/docs runs this)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

import naclip
from naclip import images, pictures, vocabulary, windows
from naclip.demo.run import SCALE, SIZE, draw_pictures, run
from naclip.maps import ScoreMaps
from naclip.methods.neighbourhood import gaussian
from naclip.pictures import Picture8
from naclip.pipeline import Encoded
from naclip.results import palette
from naclip.settings import METHODS
from naclip.synthetic import draw

OUT = Path(__file__).parent / "images"
SEED = 3
ZOOM = 2
WORDS = ["brick", "carpet", "sand", "ladybug", "couch", "fish", "umbrella"]
SHOWN = ["couch", "ladybug", "sand"]


def main() -> None:
    segment = naclip.load("tiny")
    settings = segment.model.defaults
    scene = draw(SEED, SIZE, scale=SCALE, split="held-out")
    picture = images.load(scene.image)
    words = vocabulary.parse(WORDS)
    with torch.inference_mode():
        encoded = segment.encode(picture, settings.windowing, [settings.method])[0]
        text = segment.words(words)
        raw = segment.score(encoded, text, words, settings.updated(refine=False))
        scores = (encoded.patches @ text.T).transpose(1, 2).unflatten(2, encoded.grid)
    save(
        "1-windows.png",
        [("the resized image", big(scene.image)), windows_drawn(scene.image, encoded.plan)],
    )
    save("2-attention.png", attention_row(segment, scene.image, settings))
    save("3-features.png", [("patch features", features_drawn(encoded))])
    save(
        "4-scores.png",
        [(name, grid_drawn(scores, encoded.plan, WORDS.index(name))) for name in SHOWN],
    )
    save("5-stitched.png", [(name, map_drawn(raw, WORDS.index(name))) for name in SHOWN])
    colours = palette(len(WORDS), background=False)
    labels = {
        kind: segment(scene.image, words, refine=kind == "refined") for kind in ("raw", "refined")
    }
    masks = [(f"labels, {kind}", big(colours[found.labels])) for kind, found in labels.items()]
    save("6-labels.png", [*masks, ("over the image", big(labels["refined"].overlay()))])
    Image.fromarray(draw_pictures(run(segment, SEED))["masks.png"]).save(OUT / "demo.png")


def save(name: str, row: list[tuple[str, Picture8]]) -> None:
    Image.fromarray(pictures.tiles([row])).save(OUT / name)


def big(picture: Picture8) -> Picture8:
    return picture.repeat(ZOOM, axis=0).repeat(ZOOM, axis=1)


def windows_drawn(image: Picture8, plan: windows.Plan) -> tuple[str, Picture8]:
    canvas = Image.fromarray(big(image))
    pen = ImageDraw.Draw(canvas)
    scale = SCALE * ZOOM
    colours = palette(plan.count, background=False).tolist()
    corners = [(top, left) for top in plan.y.starts for left in plan.x.starts]
    for index, ((top, left), colour) in enumerate(zip(corners, colours, strict=True)):
        inset = 4 * index  # they overlap: each a little smaller than the one before
        box = (left, top, left + plan.window[1], top + plan.window[0])
        drawn = [v * scale + d for v, d in zip(box, (inset, inset, -inset, -inset), strict=True)]
        pen.rectangle(drawn, outline=tuple(colour), width=4)
    return f"{plan.count} windows of {plan.window[0]}", np.asarray(canvas)


def attention_row(
    segment: naclip.Segmenter, image: Picture8, settings: naclip.Settings
) -> list[tuple[str, Picture8]]:
    """One patch: similar keys alone, the Gaussian alone, and both."""
    methods = [METHODS["kk"], settings.method]
    alone, both = segment.attention(image, settings.windowing, methods)
    grid = alone.shape[:2]
    patch = (2, 9)
    omega = gaussian(grid, settings.method.sigma, torch.device("cpu"))[1:, 1:].reshape(*grid, *grid)
    maps = {"similar keys": alone, "neighbours": omega.numpy(), "both: NACLIP": both}
    size = (image.shape[0] * ZOOM, image.shape[1] * ZOOM)
    row = [("a patch", pictures.marked(big(image), patch, grid))]
    for caption, values in maps.items():
        warm = pictures.heat(values[patch], size)
        row.append((caption, pictures.mixed(big(image), warm, 0.7)))
    return row


def features_drawn(encoded: Encoded) -> Picture8:
    """The windows' patch features side by side; three principal components as red, green, blue."""
    patches, plan = encoded.patches.numpy(), encoded.plan
    flat = patches.reshape(-1, patches.shape[-1])
    flat = flat - flat.mean(axis=0)
    axes = np.linalg.svd(flat, full_matrices=False)[2][:3]
    colours = np.tanh(flat @ axes.T / (flat @ axes.T).std(axis=0)) * 127 + 128
    cells = colours.astype(np.uint8).reshape(*lattice(plan), *plan.grid, 3)
    return enlarged(cells)


def grid_drawn(scores: torch.Tensor, plan: windows.Plan, name: int) -> Picture8:
    """Cosines of one word in every window, side by side."""
    values = scores[:, name].numpy()
    colours = pictures.heat(values.reshape(len(values), -1)).reshape(*values.shape, 3)
    return enlarged(colours.reshape(*lattice(plan), *plan.grid, 3))


def lattice(plan: windows.Plan) -> tuple[int, int]:
    return len(plan.y.starts), len(plan.x.starts)


def enlarged(cells: NDArray[np.uint8], pixel: int = 14, gap: int = 8) -> Picture8:
    """(rows, columns, h, w, 3) -> one picture with gaps between the windows."""
    rows, columns, h, w, _ = cells.shape
    canvas = np.full((rows * (h * pixel + gap) - gap, columns * (w * pixel + gap) - gap, 3), 255)
    for row in range(rows):
        for column in range(columns):
            block = cells[row, column].repeat(pixel, axis=0).repeat(pixel, axis=1)
            top, left = row * (h * pixel + gap), column * (w * pixel + gap)
            canvas[top : top + h * pixel, left : left + w * pixel] = block
    return canvas.astype(np.uint8)


def map_drawn(maps: ScoreMaps, name: int) -> Picture8:
    return big(pictures.heat(maps.stitched.maps(name, name + 1)[0].numpy()))


if __name__ == "__main__":
    main()
