"""Where the files of a data set are: pairs of an image and its mask, or the reason why not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from naclip.errors import DataError

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")


class ColourError(DataError):
    """A mask of colours where indices were expected."""


@dataclass(frozen=True)
class Pair:
    name: str
    image: Path
    mask: Path


@dataclass(frozen=True)
class Layout:
    """One way in which the files of a data set may lie under a folder.

    Names of images come from `split`, a file of names; without one they are all of the folder.
    """

    images: str
    masks: str
    image_suffix: str = ".jpg"
    mask_suffix: str = ".png"
    split: str = ""

    @property
    def needed(self) -> list[str]:
        """What must be there, for messages."""
        split = [self.split] if self.split else []
        return [f"{self.images}/", f"{self.masks}/*{self.mask_suffix}", *split]

    def fits(self, root: Path) -> bool:
        """Are the folders there, and the mask of at least one image?"""
        if not (root / self.images).is_dir() or not (root / self.masks).is_dir():
            return False
        if self.split and not (root / self.split).is_file():
            return False
        return any(
            (root / self.masks / (n + self.mask_suffix)).is_file() for n in self._names(root)
        )

    def pairs(self, root: Path) -> list[Pair]:
        names = self._names(root)
        if not names:
            raise DataError(f"{root / (self.split or self.images)}: lists no images")
        pairs = [
            Pair(
                name,
                root / self.images / f"{name}{self.image_suffix}",
                root / self.masks / f"{name}{self.mask_suffix}",
            )
            for name in names
        ]
        for kind, paths in (("mask", [p.mask for p in pairs]), ("image", [p.image for p in pairs])):
            missing = [path for path in paths if not path.is_file()]
            if missing:
                raise DataError(
                    f"{missing[0]}: no such {kind}, nor {len(missing) - 1} others of {len(pairs)}: "
                    f"is the download complete?"
                )
        return pairs

    def _names(self, root: Path) -> list[str]:
        if self.split:
            lines = (root / self.split).read_text("utf-8").splitlines()
            return [line.split()[0] for line in lines if line.strip()]
        folder = root / self.images
        return sorted(
            path.relative_to(folder).as_posix().removesuffix(self.image_suffix)
            for path in folder.glob(f"**/*{self.image_suffix}")
        )


def locate(
    name: str, folder: Path, homes: tuple[str, ...], layouts: tuple[Layout, ...]
) -> tuple[Path, Layout]:
    """The root under `folder`, or under one of the homes where the archives unpack to."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder: {name} is expected there")
    found = find(folder, homes, layouts)
    if found is not None:
        return found
    expected = ", ".join(layouts[0].needed)
    raise DataError(
        f"{folder}: expected {expected} (here or in {', '.join(homes)}), found {found_in(folder)}: "
        f"the whole tree: naclip datasets {name}"
    )


def find(
    folder: Path, homes: tuple[str, ...], layouts: tuple[Layout, ...]
) -> tuple[Path, Layout] | None:
    for root in [folder, *(folder / home for home in homes)]:
        for layout in layouts:
            if layout.fits(root):
                return root, layout
    return None


def found_in(folder: Path) -> str:
    """What is in a folder, for messages."""
    inside = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    return ", ".join(inside[:8]) + (", ..." if len(inside) > 8 else "") or "nothing"


def read_index_mask(path: Path) -> NDArray[np.uint16]:
    """The values of a mask as stored: palette indices or greys, never colours."""
    from PIL import Image

    try:
        with Image.open(path, formats=["PNG", "TIFF", "BMP"]) as image:
            mode, values = image.mode, np.asarray(image)
    except FileNotFoundError:
        raise DataError(f"{path}: no such mask") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f"{path}: cannot be read as a mask ({error})") from None
    if mode not in ("1", "P", "L", "I;16", "I;16B", "I"):
        raise ColourError(
            f"{path}: expected a mask of indices (palette or grey), found {mode}: "
            "use the original file, not a coloured copy"
        )
    if values.min() < 0 or values.max() > 65535:
        raise DataError(f"{path}: has values outside 0..65535: expected a mask of labels")
    return values.astype(np.uint16)
