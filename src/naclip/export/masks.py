"""Masks on disk -> items: what `naclip batch` wrote, or any folder of index PNGs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from naclip import vocabulary
from naclip.errors import DataError, UsageError
from naclip.export.item import VOID, Classes, Item, Labels

UNKNOWN = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}  # where no class has this label
GREY_OR_INDEX = ("P", "L", "1", "I;16", "I;16B", "I")


def classes_of(masks: Path, file: str | Path | None) -> Classes:
    """A file of words, a line a class; or what run.json says that the masks were made with."""
    if (masks / "run.json").is_file():
        if file is not None:
            raise UsageError(f"{masks}/run.json says what the classes are: leave --classes out")
        run = _read_json(masks / "run.json")
        return Classes(tuple(run["classes"]), bool(run["background"]))
    if file is None:
        raise UsageError(
            f"{masks} holds no run.json of naclip batch, so the classes are not known: name a file "
            "of them with --classes, a line a class, label 0 first"
        )
    words = vocabulary.load(file)
    is_background = words.classes[0].lower() == vocabulary.BACKGROUND
    return Classes(words.classes, words.has_background or is_background)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        run = json.loads(path.read_bytes())
        if "classes" not in run or "background" not in run:
            raise ValueError("not of naclip batch")
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: damaged, or of another program ({error})") from None
    return dict(run)


def items(
    masks: Path, classes: Classes, images: Path | None = None, void: int | None = None
) -> Iterator[Item]:
    """images: a folder whose files are called as the masks are, suffixes apart."""
    found = _of_batch(masks) if (masks / "run.json").is_file() else _of_folder(masks, images)
    for path, named in found:
        yield Item(_labels(path, classes, void), classes, **named)


def _of_batch(output: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    from naclip.bulk import inputs, manifest
    from naclip.bulk.stores import LocalStore

    known = manifest.read_items(LocalStore(str(output)))
    failures = output / "failures.json"
    if known is None or not failures.is_file():
        raise DataError(f"{output}: the batch is not finished: run the same command again first")
    failed = {row["path"] for row in json.loads(failures.read_bytes())}
    for item in known.items:
        path = output / f"masks/{item.target}.png"
        if item.name not in failed:
            if not path.is_file():
                raise DataError(f"{path}: no such file, but the batch says that it wrote it")
            read = partial(inputs.read, item)
            yield path, {"name": item.name, "stem": item.target, "read": read}


def _of_folder(masks: Path, images: Path | None) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    paths = sorted(path for path in masks.rglob("*.png") if not path.name.startswith("."))
    if not paths:
        raise DataError(f"{masks}: no masks found: expected index PNGs, or the output of a batch")
    files = {path.with_suffix(""): path for path in sorted(images.rglob("*.*"))} if images else {}
    for path in paths:
        name = path.relative_to(masks)
        if images is None:
            yield path, {"name": name.as_posix()}
            continue
        image = files.get(images / name.with_suffix(""))
        if image is None:
            raise DataError(f"{path}: no image {images / name.with_suffix('')}.* beside it")
        name = image.relative_to(images)
        yield path, {"name": name.as_posix(), "read": image.read_bytes}


def _labels(path: Path, classes: Classes, void: int | None) -> Labels:
    from PIL import Image

    try:
        with Image.open(path) as image:
            if image.mode not in GREY_OR_INDEX:
                raise DataError(
                    f"{path} is a picture of mode {image.mode}: expected a label a pixel, as an "
                    "index or grey PNG of 8 or 16 bits"
                )
            values = np.asarray(image)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a mask ({error})") from None
    values = values.astype(np.uint8 if values.dtype == np.bool_ else values.dtype)
    if values.dtype.itemsize > 2:
        if values.min() < 0 or values.max() > VOID:
            raise DataError(f"{path}: values from {values.min()} to {values.max()}: up to 65535")
        values = values.astype(np.uint16)
    unknown = UNKNOWN[values.dtype] if void is None else void
    is_void = (values == unknown) & (void is not None or unknown >= len(classes.names))
    return np.where(is_void, np.uint16(VOID), values.astype(np.uint16))
