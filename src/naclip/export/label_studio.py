"""Label Studio: tasks with predictions, as brush masks or polygons, with a score for each region.

A brush mask is the image as RGBA, run-length coded: 32 bits for the number of values, 5 for the
bits of a value less one, 4 x 4 for the bits of a run's length less one in each of four sizes. A run
is a 1, two bits for which size, the length less one, and the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import cv2
import numpy as np
from numpy.typing import NDArray

from naclip.errors import SettingsError
from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.export.outlines import Ring, outlines
from naclip.export.regions import Mask, Region, regions
from naclip.export.writer import Format, Made, Parts, Whole, listed

CHANNELS = 4  # RGBA: a run of pixels is a run of four times as many values
SIZES = np.array([4, 8, 12, 16])  # bits; runs of 4, 64, 1,024 and 16,384 pixels fit
MAX_RUN = 1 << 16
INSIDE = 255  # in every channel: the editor reads the alpha
LOCAL_FILES = "/data/local-files/?d="  # of a Label Studio that serves files from its disk
Kind = Literal["BrushLabels", "PolygonLabels"]


@dataclass(frozen=True)
class Control:
    """The tag of a project's label config that regions belong to, and the image they are on."""

    kind: Kind = "BrushLabels"
    name: str = "label"
    to_name: str = "image"


def prediction(
    item: Item,
    options: Options,
    control: Control,
    version: str,
    each: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """What Label Studio keeps of one task; a region's label is its class's name.

    each: called before each result is made, to stop by raising
    """
    found: list[Region] = []
    for region in regions(item, options):
        each()
        found.append(region)
    results: list[dict[str, Any]] = []
    for region, value in _values(found, item.classes, options, control):
        each()
        place = {"id": str(len(results)), **_place(item, control)}
        results.append({**place, "value": value, **_score(region)})
    return {"model_version": version, "score": _mean_score(found), "result": results}


def _values(
    found: list[Region], classes: Classes, options: Options, control: Control
) -> Iterator[tuple[Region, dict[str, Any]]]:
    """A brush mask is a whole region; a polygon is one part of it."""
    for region in found:
        label = {control.kind.lower(): [classes.names[region.label]]}
        if control.kind == "BrushLabels":
            yield region, {"format": "rle", "rle": brush_rle(region.full()), **label}
        else:
            for polygon in outlines(region, options):
                ring = polygon.with_cuts()
                if not _is_crumb(ring, options):
                    points = _percent(ring, region.size)
                    yield region, {"points": points, "closed": True, **label}


def _is_crumb(ring: Ring, options: Options) -> bool:
    """Pixels that touch at a corner are one part, but two polygons: people get each by itself."""
    return options.min_pixels > 1 and cv2.contourArea(ring.astype(np.float32)) < options.min_pixels


def _percent(ring: Ring, size: tuple[int, int]) -> list[list[float]]:
    height, width = size
    return [[round(100 * x / width, 6), round(100 * y / height, 6)] for x, y in ring.tolist()]


def _place(item: Item, control: Control) -> dict[str, Any]:
    return {
        "type": control.kind.lower(),
        "from_name": control.name,
        "to_name": control.to_name,
        "original_width": item.size[1],
        "original_height": item.size[0],
        "image_rotation": 0,
    }


def _score(region: Region) -> dict[str, float]:
    return {} if region.score is None else {"score": region.score}


def _mean_score(found: list[Region]) -> float | None:
    """Of the pixels that have a label."""
    scored = [(region.score, region.area) for region in found if region.score is not None]
    pixels = sum(area for _, area in scored)
    return round(sum(score * area for score, area in scored) / pixels, 6) if pixels else None


def brush_rle(mask: Mask) -> list[int]:
    """A mask of the whole image (H, W) as Label Studio's bytes."""
    if mask.size * CHANNELS >= 1 << 32:
        raise SettingsError(
            f"{mask.shape[1]}x{mask.shape[0]} pixels: Label Studio's masks hold less than 2^30; "
            "use polygons, or cut the image into tiles"
        )
    lengths, inside = _runs(mask.ravel())
    which = np.searchsorted(1 << SIZES, lengths)
    size = SIZES[which]
    run = (4 + which << size | lengths - 1) << 8 | np.where(inside, INSIDE, 0)
    bits = [_bits(np.array([mask.size * CHANNELS]), 32), _bits(np.array([7]), 5)]
    bits += [_bits(SIZES - 1, 4), _bits(run, 3 + size + 8)]
    return np.packbits(np.concatenate(bits)).tolist()


def _runs(pixels: Mask) -> tuple[NDArray[np.int64], Mask]:
    """Lengths of the runs of values, none above MAX_RUN, and whether they are inside."""
    starts = np.concatenate([[0], np.flatnonzero(pixels[1:] != pixels[:-1]) + 1])
    lengths = np.diff(starts, append=pixels.size) * CHANNELS
    parts = (lengths - 1) // MAX_RUN + 1
    cut = np.full(parts.sum(), MAX_RUN)
    cut[parts.cumsum() - 1] = lengths - (parts - 1) * MAX_RUN
    return cut, np.repeat(pixels[starts], parts)


def _bits(codes: NDArray[np.int64], width: NDArray[np.int64] | int) -> NDArray[np.uint8]:
    """The lowest `width` bits of each, highest first, one after another."""
    wide = codes.astype(">u4").view(np.uint8).reshape(-1, 4)
    kept = np.arange(32, 0, -1) <= np.broadcast_to(width, codes.shape)[:, np.newaxis]
    return np.unpackbits(wide, axis=1)[kept]


def make(item: Item, options: Options) -> Made:
    control = Control("PolygonLabels" if options.polygons else "BrushLabels")
    made = prediction(item, options, control, "naclip")
    return Made(part={"data": {"image": LOCAL_FILES + quote(item.name)}, "predictions": [made]})


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    del classes, options
    yield "tasks.json", listed("[", parts, "\n]\n")


FORMAT = Format(
    "Label Studio tasks with predictions: brush masks or polygons",
    ".json",
    make,
    gather,
    holes="in brush masks; polygons have cuts to them",
    scores="yes",
)
