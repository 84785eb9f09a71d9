"""Segment an image with what `naclip export onnx` wrote: onnxruntime, numpy and Pillow alone.

python onnx_segment.py FOLDER photo.jpg mask.png                   # the classes of the export
python onnx_segment.py FOLDER photo.jpg mask.png cat sofa=couch    # others; needs `tokenizers`
"""

import json
import sys
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession
from PIL import Image, ImageOps


def resize(image, height, width):  # exactly as OpenCV does: in whole numbers
    def taps(size_in, size_out):  # two neighbours and their weights, in parts of 2048
        at = ((np.arange(size_out) + 0.5) * (size_in / size_out) - 0.5).astype(np.float32)
        low, part = np.floor(at).astype(int), at - np.floor(at)
        for index, weight in ((low, 1 - part), (low + 1, part)):
            yield np.clip(index, 0, size_in - 1), np.rint(weight * 2048).astype(int)[:, None]

    rows = sum(image[:, index] * weight for index, weight in taps(image.shape[1], width)) >> 4
    parts = (rows[index] * weight[..., None] >> 16 for index, weight in taps(len(rows), height))
    return sum(parts, 2) >> 2


def bilinear(size_in, size_out):  # the same as a matrix (out, in)
    at = np.maximum((np.arange(size_out) + 0.5) * size_in / size_out - 0.5, 0)[:, None]
    return np.maximum(0, 1 - np.abs(np.minimum(at, size_in - 1) - np.arange(size_in)))


def axis(small, full, window, stride, cells):  # where windows start; a matrix cells -> pixels
    if small < window:
        sys.exit(f"the image is {small} pixels wide once resized, narrower than a window: crop it")
    starts = [min(start, small - window) for start in range(0, small - window + stride, stride)]
    spread = np.zeros((small, len(starts), cells))
    for index, start in enumerate(starts):
        spread[start : start + window, index] = bilinear(cells, window)
    mean = spread / spread.sum((1, 2), keepdims=True)  # of the windows over a pixel
    return starts, bilinear(small, full) @ mean.reshape(small, -1)


def encode(folder, words, templates):  # a vector for each name: the mean over its prompts
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.enable_padding(pad_id=0)
    text, vectors = InferenceSession(f"{folder}/text.onnx"), []
    for word in words:
        prompts = tokenizer.encode_batch([line.replace("{}", word) for line in templates])
        mean = text.run(None, {"ids": np.array([prompt.ids for prompt in prompts])})[0].mean(0)
        vectors.append(mean / np.linalg.norm(mean))
    return np.stack(vectors)


def score(folder, image, text, config):  # cosines of windows' cells, and what makes them pixels
    options, cells = config["settings"], config["cells"]
    rgb = np.asarray(ImageOps.exif_transpose(Image.open(image)).convert("RGB"), int)
    size, window, stride = rgb.shape[:2], options["window"], options["stride"]
    factor = min(options["long_side"] / max(size), options["short_side"] / min(size))
    height, width = (int(side * factor + 0.5) for side in size)
    pixels = (resize(rgb, height, width) - config["mean"]) / config["std"]
    pixels = pixels.transpose(2, 0, 1).astype(np.float32)
    tops, to_rows = axis(height, size[0], window, stride, cells)
    lefts, to_columns = axis(width, size[1], window, stride, cells)
    cut = np.stack([pixels[:, y : y + window, x : x + window] for y in tops for x in lefts])
    patches = InferenceSession(f"{folder}/vision.onnx").run(None, {"pixels": cut})[0]
    lattice = (patches @ text.T).reshape(len(tops), len(lefts), cells, cells, len(text))
    lattice = lattice.transpose(4, 0, 2, 1, 3).reshape(len(text), len(tops) * cells, -1)
    return lattice, to_rows, to_columns.T


def segment(folder, image, classes=()):  # -> labels (height, width), names of the classes
    config = json.loads(Path(folder, "config.json").read_text("utf-8"))
    scale, threshold = config["settings"]["logit_scale"], config["settings"]["threshold"]
    asked = {text.split("=")[0]: text.replace("=", ",").split(",") for text in classes}
    names = asked or {known["name"]: known["names"] for known in config["classes"]}
    words = [name for several in names.values() for name in several]
    text = encode(folder, words, config["templates"]) if classes else np.load(f"{folder}/words.npy")
    lattice, to_rows, to_columns = score(folder, image, text, config)
    maps = (to_rows @ cells @ to_columns * scale for cells in lattice)
    best, total, labels = -np.inf, 0, 0
    for label, mine in enumerate(names.values()):  # a class is as likely as its likeliest name
        for logits in (next(maps) for _ in mine):
            labels = np.where(logits > best, label, labels)
            best, total = np.maximum(logits, best), total + np.exp(logits - scale)
    if not classes:  # the export's threshold and background belong to its own classes
        labels = np.where(np.exp(best - scale) / total < threshold, 0, labels)
    return labels.astype(np.uint16 if len(names) > 255 else np.uint8), list(names)


if __name__ == "__main__":
    folder, image, mask, *classes = sys.argv[1:]
    labels, titles = segment(folder, image, classes)
    Image.fromarray(labels).save(mask)
    for label, title in enumerate(titles):
        print(f"{label:4} {title:20} {(labels == label).mean():6.1%}")
