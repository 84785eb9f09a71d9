"""Two evaluations of the same images: by class, with a paired bootstrap, and image by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naclip.errors import DataError, UsageError
from naclip.evaluate import metric
from naclip.evaluate.evaluation import open_data
from naclip.evaluate.layouts import read_index_mask
from naclip.evaluate.metric import VOID, PerImage, Sparse
from naclip.evaluate.record import made_folder
from naclip.evaluate.report import difference, number, numbers
from naclip.files import atomic
from naclip.pictures import legend, tiles
from naclip.results import palette
from naclip.settings import Settings

Document = Mapping[str, Any]
FORMAT = "naclip comparison 1"


def compare(a: Document, b: Document) -> dict[str, Any]:
    """B against A on the images that both have."""
    _check_comparable(a, b)
    images_a, images_b = _images(a), _images(b)
    common = [name for name in images_a if name in images_b]
    if not common:
        raise UsageError("the two evaluations have no image in common: nothing to compare")
    classes = tuple(a["words"]["classes"])
    pairs = [[images[name] for name in common] for images in (images_a, images_b)]
    found = [numbers(metric.total(images, len(classes)), classes) for images in pairs]
    per_image = [PerImage.of(images, len(classes)) for images in pairs]
    weights = metric.draws(len(common))
    drawn = per_image[1].resampled(weights) - per_image[0].resampled(weights)
    change = per_image[1].images_miou() - per_image[0].images_miou()
    order = np.argsort(-np.nan_to_num(np.abs(change)), kind="stable")
    return {
        "format": FORMAT,
        "data": a["data"]["name"],
        "images": len(common),
        "left_out": sorted(images_a.keys() ^ images_b.keys()),
        "differs": differing(a, b),
        "miou": [part["miou"] for part in found],
        "difference": difference(found[0]["miou"], found[1]["miou"]),
        "interval": [number(bound) for bound in metric.interval(drawn)],
        "share_of_draws_better": number(float(np.mean(drawn > 0))),
        "classes": [
            {
                "class": one["class"],
                "iou": [one["iou"], other["iou"]],
                "difference": difference(one["iou"], other["iou"]),
            }
            for one, other in zip(found[0]["classes"], found[1]["classes"], strict=True)
        ],
        "by_image": [
            {"image": common[index], "difference": number(float(change[index]))} for index in order
        ],
    }


def _check_comparable(a: Document, b: Document) -> None:
    if a["data"]["name"] != b["data"]["name"]:
        raise UsageError(
            f"one is of {a['data']['name']}, the other of {b['data']['name']}: compare two "
            "evaluations of the same data set"
        )
    if list(a["words"]["classes"]) != list(b["words"]["classes"]):
        raise UsageError("the two evaluations have different classes: their labels do not compare")


def _images(document: Document) -> dict[str, Sparse]:
    return {
        entry["image"]: np.array(entry["pixels"], np.int32).reshape(-1, 3)
        for entry in document["images"]
    }


def differing(a: Document, b: Document) -> dict[str, list[Any]]:
    """What was not the same, by name: [in A, in B]."""
    parts = [
        {
            **document["settings"],
            **{f"model {key}": value for key, value in document["model"].items()},
            "names": {key: list(names) for key, names in document["words"]["classes"].items()},
            "prompts": len(document["words"]["prompts"]),
            "naclip": document["versions"]["naclip"],
        }
        for document in (a, b)
    ]
    return {
        key: [parts[0].get(key), parts[1].get(key)]
        for key in parts[0] | parts[1]
        if parts[0].get(key) != parts[1].get(key)
    }


def draw(a: Document, b: Document, names: Sequence[str], out: Path) -> list[Path]:
    """Image, truth and both masks side by side over their legend, a PNG for each image."""
    for which, document in (("first", a), ("second", b)):
        if not document["masks"]:
            raise UsageError(f"the {which} evaluation kept no masks: run it with --save-masks DIR")
    if a["masks"] == b["masks"]:
        raise UsageError(
            f"both evaluations saved their masks in {a['masks']}, the second over the first: run "
            "one again with --save-masks to a folder of its own"
        )
    root = None if a["data"]["root"] == "drawn" else Path(a["data"]["root"])
    data = open_data(a["data"]["name"], root, Settings())
    classes = list(a["words"]["classes"])
    colours = palette(len(classes), a["words"]["background"])
    made_folder(out)
    written = []
    for name in names:
        sample = data.sample(name)
        truth = sample.truth()
        masks = [read_index_mask(Path(d["masks"]) / f"{name}.png") for d in (a, b)]
        if any(mask.shape != truth.shape for mask in masks):
            raise DataError(f"{name}: the masks and the image have different sizes")
        panels = [
            ("image", sample.picture().rgb),
            ("truth", coloured(truth, colours)),
            (f"A: {a['settings']['method']}", coloured(masks[0], colours)),
            (f"B: {b['settings']['method']}", coloured(masks[1], colours)),
        ]
        shown = np.unique(np.stack([truth, *masks]))
        entries = [(classes[i], "#" + bytes(colours[i]).hex()) for i in shown if i != VOID]
        picture = tiles([panels])
        written.append(out / f"{name.replace('/', '-')}.png")
        _save(written[-1], np.concatenate([picture, legend(entries, picture.shape[1])]))
    return written


def coloured(labels: NDArray[Any], colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Labels in the colours of their classes; void is white."""
    picture = np.full((*labels.shape, 3), 255, np.uint8)
    judged = labels != VOID
    picture[judged] = colours[labels[judged]]
    return picture


def _save(path: Path, picture: NDArray[np.uint8]) -> None:
    from PIL import Image

    with atomic(path) as file:
        Image.fromarray(picture).save(file, format="PNG")
