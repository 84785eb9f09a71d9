"""COCO's JSON annotations as ground truth: instances (polygons, run lengths) and panoptic maps.

Where nothing is annotated, a pixel is background if the classes have one, void otherwise; so are
categories that are not among the classes. Where instances overlap, the smaller is on top.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naclip import images
from naclip.errors import DataError
from naclip.evaluate.datasets import Sample
from naclip.evaluate.metric import VOID, Truth
from naclip.images import Picture
from naclip.vocabulary import Vocabulary, folded

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class CocoSample:
    name: str
    image: Path
    size: tuple[int, int]
    items: Sequence[Mapping[str, Any]]  # annotations, or segments of the panoptic map
    panoptic: Path | None
    labels: Mapping[int, int]  # category -> label
    elsewhere: int  # label of what is not annotated

    def picture(self) -> Picture:
        return images.load(self.image)

    def truth(self) -> Truth:
        if self.panoptic is not None:
            return self._of_segments(_read_ids(self.panoptic))
        truth = np.full(self.size, self.elsewhere, np.uint16)
        for item in sorted(self.items, key=lambda item: -_area(item["segmentation"])):
            label = self.labels.get(item["category_id"], self.elsewhere)
            truth[_mask(item["segmentation"], self.size, self.name)] = label
        return truth

    def _of_segments(self, ids: NDArray[np.int64]) -> Truth:
        categories = {item["id"]: item["category_id"] for item in self.items}
        found, inverse = np.unique(ids, return_inverse=True)
        labels = [self.labels.get(categories.get(int(i), -1), self.elsewhere) for i in found]
        return np.array(labels, np.uint16)[inverse].reshape(ids.shape)


def open_annotations(
    path: Path, pictures: Path, masks: Path, words: Vocabulary | None
) -> tuple[Vocabulary, list[Sample]]:
    """Classes and samples of a file; without a class file, its categories are the classes."""
    try:
        table = json.loads(path.read_text("utf-8"))
        categories = {c["id"]: str(c["name"]) for c in table["categories"]}
        listed = {
            i["id"]: (Path(i["file_name"]), (int(i["height"]), int(i["width"])))
            for i in table["images"]
        }
        items: dict[int, list[Any]] = defaultdict(list)
        for annotation in table["annotations"]:
            items[annotation["image_id"]] += _items(annotation, path)
        maps = {a["image_id"]: a["file_name"] for a in table["annotations"] if "file_name" in a}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: expected COCO's images, annotations and categories ({error!r})"
        ) from None
    if words is None:
        names = [categories[i] for i in sorted(categories)]
        words = Vocabulary(tuple(names), tuple((name,) for name in names))
    elsewhere = 0 if words.has_background else VOID
    labels = _labels(categories, words, path)
    samples = [
        CocoSample(
            name=file.with_suffix("").as_posix(),
            image=pictures / file,
            size=size,
            items=items[i],
            panoptic=masks / maps[i] if i in maps else None,
            labels=labels,
            elsewhere=elsewhere,
        )
        for i, (file, size) in sorted(listed.items(), key=lambda pair: pair[1])
    ]
    _check_files(samples, path)
    return words, list(samples)


def _items(annotation: Mapping[str, Any], path: Path) -> list[Any]:
    """The segments of a panoptic map, or an instance as the only one, with all that is needed."""
    segments = annotation.get("segments_info")
    which = f"an annotation of image {annotation['image_id']}"
    for item in [annotation] if segments is None else segments:
        needed = ("category_id", "segmentation") if segments is None else ("category_id", "id")
        missing = [key for key in needed if item.get(key) in (None, [])]
        if missing:
            raise DataError(
                f"{path}: {which} has no {missing[0]}: expected a category_id and a mask "
                "(segmentation, or segments_info): boxes alone are no ground truth"
            )
        if segments is None and not _is_mask(item["segmentation"]):
            raise DataError(
                f"{path}: {which} has a segmentation that is neither polygons [[x, y, x, y, ...]] "
                "nor run lengths {'counts': ..., 'size': ...}"
            )
    if segments is not None and "file_name" not in annotation:
        raise DataError(f"{path}: {which} has segments_info but no file_name of its panoptic map")
    return [annotation] if segments is None else list(segments)


def _is_mask(segmentation: Any) -> bool:
    if isinstance(segmentation, dict):
        counts = segmentation.get("counts")
        return isinstance(counts, str) or _are_numbers(counts)
    return isinstance(segmentation, list) and all(
        _are_numbers(polygon) and len(polygon) % 2 == 0 for polygon in segmentation
    )


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(v, (int, float)) for v in values)


def _check_files(samples: Sequence[CocoSample], path: Path) -> None:
    """Before anything is computed: is everything there, once?"""
    if not samples:
        raise DataError(f"{path}: lists no images")
    needed = [s.image for s in samples] + [s.panoptic for s in samples if s.panoptic]
    missing = [file for file in needed if not file.is_file()]
    if missing:
        raise DataError(
            f"{missing[0]}: no such file, nor {len(missing) - 1} others of {len(needed)} that "
            f"{path.name} names: file_name counts from images/, of panoptic maps from masks/"
        )
    names: set[str] = set()
    for sample in samples:
        if sample.name in names:
            raise DataError(f"{path}: lists two images named {sample.name}: rename one of them")
        names.add(sample.name)


def _labels(categories: Mapping[int, str], words: Vocabulary, path: Path) -> dict[int, int]:
    """Category -> label, by any of the class's names."""
    label_of = {folded(n): label for label, names in enumerate(words.names) for n in names}
    label_of |= {folded(title): label for label, title in enumerate(words.classes)}
    labels = {i: label_of[folded(n)] for i, n in categories.items() if folded(n) in label_of}
    if not labels:
        raise DataError(
            f"{path}: none of its categories ({', '.join(list(categories.values())[:5])}, ...) is "
            f"a class ({', '.join(words.classes[:5])}, ...): use the same names in both"
        )
    return labels


def _read_ids(path: Path) -> NDArray[np.int64]:
    """Segment ids of a panoptic map: R + 256 G + 65536 B."""
    from PIL import Image

    try:
        with Image.open(path, formats=["PNG"]) as image:
            rgb = np.asarray(image.convert("RGB")).astype(np.int64)
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a panoptic map ({error})") from None
    return rgb @ np.array([1, 256, 65536])


def _mask(segmentation: Any, size: tuple[int, int], name: str) -> Mask:
    if isinstance(segmentation, list):
        inside = np.zeros(size, np.bool_)
        for polygon in segmentation:
            inside |= _inside(np.array(polygon, float).reshape(-1, 2), size)
        return inside
    runs = _runs(segmentation)
    if sum(runs) != size[0] * size[1] or min(runs, default=0) < 0:
        raise DataError(
            f"{name}: run lengths of {sum(runs)} pixels: expected those of its "
            f"{size[1]}x{size[0]} ({size[0] * size[1]})"
        )
    values = np.arange(len(runs)) % 2 == 1  # runs of outside and inside take turns
    return np.repeat(values, runs).reshape(size[::-1]).T  # column by column


def _runs(segmentation: Mapping[str, Any]) -> list[int]:
    counts = segmentation["counts"]
    return _decompress(counts) if isinstance(counts, str) else [int(count) for count in counts]


def _area(segmentation: Any) -> float:
    """By itself: files of some tools have no `area`, or a 0."""
    if isinstance(segmentation, dict):
        return sum(_runs(segmentation)[1::2])
    return sum(_area_of_polygon(np.array(p, float).reshape(-1, 2)) for p in segmentation)


def _area_of_polygon(polygon: NDArray[np.float64]) -> float:
    x, y = polygon.T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


def _inside(polygon: NDArray[np.float64], size: tuple[int, int]) -> Mask:
    """Pixels whose centre is inside, by the even-odd rule: edges to the left of each centre."""
    inside = np.zeros(size, np.bool_)
    columns = np.arange(size[1]) + 0.5
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        low, high = sorted((y0, y1))
        rows = np.arange(max(0, int(np.ceil(low - 0.5))), min(size[0], int(np.ceil(high - 0.5))))
        if len(rows):
            crossing = x0 + (rows + 0.5 - y0) * (x1 - x0) / (y1 - y0)
            inside[rows] ^= crossing[:, None] <= columns
    return inside


def _decompress(text: str) -> list[int]:
    """COCO's compressed run lengths: 5 bits a character, least first; from the third run on, the
    difference to the run before the last."""
    runs: list[int] = []
    value = shift = 0
    for char in text:
        bits = ord(char) - 48
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:  # the sign
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    return runs
