"""A label map -> regions: what a class covers, whole or part by part; and their run lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from naclip.export.item import VOID, Item, score_of
from naclip.export.options import EVERYTHING, Options

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Region:
    """Pixels of one class of one image. Holes are holes: `mask` is exact."""

    label: int
    top: int  # of its bounding box, whose pixels are mask's
    left: int
    mask: Mask  # (h, w), touching all four sides
    size: tuple[int, int]  # (height, width) of the image
    score: float | None  # mean probability of its pixels; None: not known

    @property
    def area(self) -> int:
        """Pixels."""
        return int(np.count_nonzero(self.mask))

    @property
    def box(self) -> tuple[int, int, int, int]:
        """(left, top, width, height), COCO's bbox."""
        return self.left, self.top, self.mask.shape[1], self.mask.shape[0]

    @property
    def window(self) -> tuple[slice, slice]:
        """The bounding box in an array of the image's size."""
        height, width = self.mask.shape
        return slice(self.top, self.top + height), slice(self.left, self.left + width)

    def full(self) -> Mask:
        """(H, W)"""
        whole = np.zeros(self.size, np.bool_)
        whole[self.window] = self.mask
        return whole


def regions(item: Item, options: Options = EVERYTHING) -> Iterator[Region]:
    """Of every class that is there, in label order; never of the background or of void.

    Parts are 8-connected (pixels that touch at a corner are one part), in the order of their
    topmost, then leftmost pixel.
    """
    there = np.flatnonzero(np.bincount(item.labels.ravel(), minlength=VOID + 1)[:VOID])
    for label in there[there >= item.classes.first].tolist():
        whole = _region(item, label, 0, 0, item.labels == label)
        if options.instances or options.min_pixels > 1:
            yield from _parts(item, whole, options)
        else:
            yield whole


def _parts(item: Item, whole: Region, options: Options) -> Iterator[Region]:
    """The connected parts that are large enough, one by one or together again."""
    _, parts, stats, _ = cv2.connectedComponentsWithStats(whole.mask.astype(np.uint8))
    large = stats[:, cv2.CC_STAT_AREA] >= options.min_pixels
    large[0] = False  # what is not of the class
    if not options.instances:
        if large.any():
            yield _region(item, whole.label, whole.top, whole.left, large[parts])
        return
    first = np.zeros(len(stats), np.int64)
    first[parts.ravel()[::-1]] = np.arange(parts.size)[::-1]  # of several, the last one stays
    for part in sorted(np.flatnonzero(large).tolist(), key=first.__getitem__):
        left, top, width, height = stats[part, :4].tolist()
        mask = parts[top : top + height, left : left + width] == part
        yield _region(item, whole.label, whole.top + top, whole.left + left, mask)


def _region(item: Item, label: int, top: int, left: int, mask: Mask) -> Region:
    """mask: of a box that begins at (top, left) and may be larger than needed."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    mask = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    top, left = top + int(rows[0]), left + int(columns[0])
    scores = item.scores
    if scores is not None:
        scores = scores[top : top + mask.shape[0], left : left + mask.shape[1]]
    return Region(label, top, left, mask, item.size, score_of(scores, mask))


def counts(region: Region) -> list[int]:
    """COCO's run lengths of the whole image: column by column, outside and inside in turn."""
    height, width = region.size
    changes = np.flatnonzero(np.diff(region.mask.T, axis=1, prepend=False, append=False))
    column, row = np.divmod(changes, region.mask.shape[0] + 1)
    places = (region.left + column) * height + region.top + row
    # A run that ends at the foot of a column goes on at the head of the next.
    same = np.flatnonzero(places[1:] == places[:-1])
    places = np.delete(places, np.concatenate([same, same + 1]))
    runs: list[int] = np.diff(places, prepend=0, append=height * width).tolist()
    return runs if runs[-1] else runs[:-1]
