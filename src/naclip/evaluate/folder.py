"""Anyone's images and masks as a data set.

    DIR/
      classes.txt, .toml or .json    a vocabulary file (see naclip.vocabulary)
      images/                        any picture files, in subfolders too
      masks/                         NAME.png for each images/NAME.jpg
or  annotations.json                 instead of masks: COCO instances; with masks: COCO panoptic

A mask of indices holds the number of the class, from 0 in the order of the file, and 255 for void.
Other numbers, or colours, stand in the class file:

    void = [255]                     # or ["#000000"]
    [values]
    road = 7                         # or "#804080"
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from naclip import vocabulary
from naclip.errors import DataError, no_such
from naclip.evaluate.coco import open_annotations
from naclip.evaluate.datasets import DataSet, FileSample, Sample, read_labels
from naclip.evaluate.labels import UNKNOWN, LabelMap, mapping
from naclip.evaluate.layouts import IMAGE_SUFFIXES, ColourError, Pair, found_in
from naclip.evaluate.metric import VOID, Truth
from naclip.settings import Settings
from naclip.vocabulary import Vocabulary

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CLASS_FILES = ("classes.toml", "classes.txt", "classes.json")
ANNOTATIONS = "annotations.json"
DEFAULT_VOID = 255


def open_folder(folder: Path, settings: Settings) -> DataSet:
    """The data set in a user's folder."""
    class_file = next((folder / n for n in CLASS_FILES if (folder / n).is_file()), None)
    annotated = (folder / ANNOTATIONS).is_file()
    pictures = folder / "images"
    if not pictures.is_dir() or not (annotated or (class_file and (folder / "masks").is_dir())):
        raise DataError(
            f"{folder}: expected images/, masks/ and one of {', '.join(CLASS_FILES)} (or "
            f"{ANNOTATIONS}), found {found_in(folder) if folder.is_dir() else 'no such folder'}: "
            "the whole tree: naclip datasets folder"
        )
    words = vocabulary.load(class_file) if class_file else None
    samples: list[Sample]
    if annotated:
        words, samples = open_annotations(folder / ANNOTATIONS, pictures, folder / "masks", words)
    else:
        assert words is not None
        samples = _pairs(pictures, folder / "masks", _reader(class_file, words))
    root = str(folder.resolve())
    return DataSet(
        "folder", words, settings, samples, root, images=f"folder {root}", official=len(samples)
    )


def _pairs(pictures: Path, masks: Path, read_mask: Callable[[Path], Truth]) -> list[Sample]:
    paths = sorted(p for p in pictures.glob("**/*") if p.suffix.lower() in IMAGE_SUFFIXES)
    if not paths:
        raise DataError(f"{pictures}: holds no images ({', '.join(IMAGE_SUFFIXES)})")
    samples: dict[str, Sample] = {}
    for path in paths:
        name = path.relative_to(pictures).with_suffix("").as_posix()
        if name in samples:
            raise DataError(f"{path}: a second image named {name}: their mask would be the same")
        mask = masks / f"{name}.png"
        if not mask.is_file():
            raise DataError(f"{mask}: no such mask for {path}")
        samples[name] = FileSample(Pair(name, path, mask), read_mask)
    return list(samples.values())


def _reader(class_file: Path | None, words: Vocabulary) -> Callable[[Path], Truth]:
    """How masks are read: by index or by colour, as the class file says."""
    table = _table(class_file)
    values, void = table.get("values", {}), table.get("void", [])
    if not isinstance(values, dict) or not isinstance(void, list):
        raise DataError(f"{class_file}: expected void as a list and [values] as a table")
    for name in values:
        if name not in words.classes:
            raise DataError(f"{class_file}: [values] {_unknown(name, words)}")
    labels = {words.classes.index(name): value for name, value in values.items()}
    _check_distinct(class_file, [*labels.values(), *void])
    if any(isinstance(value, str) for value in labels.values()):
        colours = {_colour(class_file, colour): label for label, colour in labels.items()}
        colours |= {_colour(class_file, colour): VOID for colour in void}
        return partial(_read_colours, colours)
    if not labels:
        labels = {label: label for label in range(len(words.classes))}
    if not all(isinstance(v, int) and 0 <= v < UNKNOWN for v in (*labels.values(), *void)):
        raise DataError(f"{class_file}: [values] and void are all numbers or all '#rrggbb'")
    if not void and DEFAULT_VOID not in labels.values():
        void = [DEFAULT_VOID]
    known = f"a class's number ({min(labels.values())}..{max(labels.values())}) or void {void}"
    translated = mapping({v: k for k, v in labels.items()}, void, known)
    return partial(_read_indices, translated)


def _unknown(name: str, words: Vocabulary) -> str:
    return no_such("class", name, words.classes, "naclip datasets folder")


def _check_distinct(class_file: Path | None, values: list[Any]) -> None:
    written = [value.lower() if isinstance(value, str) else value for value in values]
    for value in written:
        if written.count(value) > 1:
            raise DataError(f"{class_file}: {value!r} stands for two things in [values] and void")


def _read_indices(translated: LabelMap, path: Path) -> Truth:
    try:
        return read_labels(translated, path)
    except ColourError as error:
        raise DataError(
            f"{error}, or say what its colours mean: [values] in classes.toml (naclip datasets "
            "folder)"
        ) from None


def _table(class_file: Path | None) -> Mapping[str, Any]:
    if class_file is None or class_file.suffix == ".txt":
        return {}
    text = class_file.read_text("utf-8-sig")
    table = tomllib.loads(text) if class_file.suffix == ".toml" else json.loads(text)
    return table if isinstance(table, dict) else {}


def _colour(class_file: Path | None, text: Any) -> int:
    try:
        if len(text) == 7 and text[0] == "#":
            return int(text[1:], 16)
    except (TypeError, ValueError):
        pass
    raise DataError(f"{class_file}: {text!r} is not a colour: expected '#rrggbb'")


def _read_colours(colours: Mapping[int, int], path: Path) -> Truth:
    """A mask whose colours are classes: every pixel's colour must be known."""
    from PIL import Image

    try:
        with Image.open(path, formats=["PNG", "BMP", "TIFF"]) as image:
            rgb = np.asarray(image.convert("RGB")).astype(np.int32)
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a mask ({error})") from None
    packed = (rgb[..., 0] << 16) | (rgb[..., 1] << 8) | rgb[..., 2]
    found, inverse = np.unique(packed, return_inverse=True)
    for colour in found:
        if int(colour) not in colours:
            raise DataError(f"{path}: a pixel is #{colour:06x}: no class or void has this colour")
    labels = np.array([colours[int(colour)] for colour in found], np.uint16)
    return labels[inverse].reshape(packed.shape)
