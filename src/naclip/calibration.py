"""Images that int8 takes its ranges from: named by the user, so that every run takes the same.

Ranges from whatever image came first would differ between runs, and between the actors of one run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from naclip import images
from naclip.errors import ImageError, SettingsError
from naclip.images import Picture

if TYPE_CHECKING:
    from naclip.images import ImageSource

MOST = 32  # images: each is some windows, and each window costs a pass through the tower
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")


def check(precision: str, given: Sequence[object]) -> None:
    if precision == "int8" and not given:
        raise SettingsError(
            "precision int8 takes its ranges from images: name some that are like yours, "
            "--calibrate PHOTOS/ or load(..., calibration=[...])"
        )
    if precision != "int8" and given:
        raise SettingsError(
            f"calibration images are for precision int8, and this is {precision}: leave them out"
        )


def pictures(given: Sequence[ImageSource]) -> list[Picture]:
    """Images, and the images of folders in the order of their names; at most MOST of each."""
    found: list[Picture] = []
    for source in given:
        folder = Path(source) if isinstance(source, (str, Path)) else None
        if folder is None or not folder.is_dir():
            found.append(images.load(source))
            continue
        inside = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
        if not inside:
            raise ImageError(f"{folder}: no image to calibrate with ({', '.join(SUFFIXES)})")
        found += [images.load(path) for path in inside[:MOST]]
    return found


def digest(used: Sequence[Picture]) -> str:
    """sha256 of the images; empty where there are none."""
    if not used:
        return ""
    total = hashlib.sha256()
    for picture in used:
        total.update(repr(picture.size).encode() + picture.rgb.tobytes())
    return total.hexdigest()
