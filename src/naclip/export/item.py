"""What an exporter gets of one image, wherever it comes from: a result, or a mask on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from naclip.errors import SettingsError
from naclip.files import is_file
from naclip.results import palette

if TYPE_CHECKING:
    from naclip.results import Segmentation
    from naclip.vocabulary import Vocabulary

VOID = 65535  # the label of a pixel of which no class is known
Labels = NDArray[np.uint16]
Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Classes:
    """The classes of a whole data set. A label is an index into `names`, in every image.

    Formats number the classes that were asked for, in their order, and do not count a background:
    `number` is 0, 1, 2... (YOLO's class); COCO's category id and VOC's pixel value are number + 1.
    """

    names: tuple[str, ...]
    has_background: bool = False  # label 0 is background

    @staticmethod
    def of(words: Vocabulary) -> Classes:
        return Classes(words.classes, words.has_background)

    @property
    def first(self) -> int:
        """The label of the first class that is not the background."""
        return int(self.has_background)

    @property
    def things(self) -> tuple[str, ...]:
        """The names without the background: the index is the number."""
        return self.names[self.first :]

    def number(self, label: int) -> int:
        """0, 1, 2... of a label that is not the background."""
        return label - self.first

    def colours(self) -> NDArray[np.uint8]:
        """(labels, 3): those of the masks and overlays."""
        return palette(len(self.names), self.has_background)


@dataclass(frozen=True, eq=False)
class Item:
    labels: Labels  # (H, W), index into classes.names, or VOID
    classes: Classes
    name: str  # of the image, below the data set's folder, with "/": "city/street.jpg"
    stem: str = ""  # what files about it are called, without a suffix: "city/street"
    scores: Scores | None = None  # (H, W), probability of the pixel's class; None: not known
    read: Callable[[], bytes] | None = None  # the image's file, where there is one
    image: NDArray[np.uint8] | None = field(default=None, repr=False)  # (H, W, 3), where at hand

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", np.asarray(self.labels, np.uint16))
        object.__setattr__(self, "name", _inside(self.name) or "image")
        stem = _inside(self.stem) or PurePosixPath(self.name).with_suffix("").as_posix()
        object.__setattr__(self, "stem", stem)
        known = len(self.classes.names)
        foreign = self.labels[(self.labels >= known) & (self.labels != VOID)]
        if foreign.size:
            raise SettingsError(
                f"{self.name}: a pixel has the label {foreign[0]}, but there are {known} classes: "
                "give the classes that the mask was made with"
            )

    @property
    def size(self) -> tuple[int, int]:
        """(height, width)"""
        return self.labels.shape[0], self.labels.shape[1]

    def blank(self) -> Item:
        """The same image with one pixel, of no class."""
        labels = np.full((1, 1), VOID, np.uint16)
        image = None if self.image is None else np.zeros((1, 1, 3), np.uint8)
        read = None if self.read is None else bytes
        return replace(self, labels=labels, scores=None, image=image, read=read)

    @staticmethod
    def of(result: Segmentation, name: str = "", stem: str = "") -> Item:
        """name: of the image in the export; by default that of the file it was read from."""
        path = Path(result.name)
        return Item(
            result.labels.astype(np.uint16),
            Classes(result.classes, result.has_background),
            name or path.name,
            stem,
            result.scores,
            path.read_bytes if is_file(path) else None,
            result.image,
        )


def named(paths: Sequence[str | os.PathLike[str]]) -> Iterator[tuple[str, str]]:
    """(name, stem) of image files: below the folder common to all, and no stem twice."""
    full = [os.path.abspath(path) for path in paths]  # noqa: PTH100  (links stay as they are)
    base = os.path.commonpath([os.path.dirname(path) for path in full]) if full else ""  # noqa: PTH120
    names = [PurePosixPath(Path(path).relative_to(base).as_posix()) for path in full]
    stems = [name.with_suffix("").as_posix() for name in names]
    for name, stem in zip(names, stems, strict=True):
        yield name.as_posix(), stem if stems.count(stem) == 1 else name.as_posix()


def _inside(name: str) -> str:
    """A name that cannot lead out of a folder."""
    return "/".join(part for part in name.split("/") if part not in ("", ".", ".."))


def score_of(scores: Scores | None, mask: NDArray[Any]) -> float | None:
    """The mean probability over a region, where probabilities are known."""
    return None if scores is None else round(float(scores[mask].mean(dtype=np.float64)), 6)
