"""What a segmentation is to its user: labels with names, scores, pictures, and what was done."""

from __future__ import annotations

import colorsys
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from naclip.errors import SettingsError, no_such
from naclip.files import atomic

DEFAULT_OPACITY = 0.55
SHADES = ((0.72, 0.95), (0.55, 0.80), (0.90, 0.72))  # saturation, value


@dataclass(frozen=True)
class Report:
    """What was really done to get a result."""

    model: str
    settings: Mapping[str, Any]
    refined: bool
    windows: int
    resized: tuple[int, int]  # (height, width) that the model saw
    precision: str
    device: str
    engine: str
    seconds: Mapping[str, float]  # by stage
    notes: tuple[str, ...] = ()
    calibration: str = ""  # sha256 of the images that int8 took its ranges from


@dataclass(frozen=True, eq=False)
class Segmentation:
    labels: NDArray[np.unsignedinteger[Any]]  # (H, W), index into classes
    classes: tuple[str, ...]
    scores: NDArray[np.float32]  # (H, W), probability of the best class, over classes
    report: Report
    has_background: bool  # label 0 is background
    image: NDArray[np.uint8] = field(repr=False)  # (H, W, 3), upright
    _probabilities_of: Callable[[Sequence[int]], NDArray[np.float32]] = field(repr=False)
    name: str = "image"  # where the image was read from

    def __post_init__(self) -> None:
        for array in (self.labels, self.scores, self.image):
            array.flags.writeable = False

    @property
    def size(self) -> tuple[int, int]:
        """(height, width)"""
        return self.labels.shape[0], self.labels.shape[1]

    @property
    def coverage(self) -> dict[str, float]:
        """Share of the pixels of each class, in label order."""
        counts = np.bincount(self.labels.ravel(), minlength=len(self.classes))
        return {
            name: float(count) / self.labels.size
            for name, count in zip(self.classes, counts, strict=True)
        }

    def mask(self, name: str) -> NDArray[np.bool_]:
        """Where the class is."""
        return np.asarray(self.labels == self._label(name))

    def heatmap(self, name: str) -> NDArray[np.float32]:
        """(H, W) probability of one class, over classes; computed when asked for."""
        return self._probabilities_of([self._label(name)])[0]

    def probabilities(self) -> NDArray[np.float32]:
        """(classes, H, W) all of them: classes x pixels x 4 bytes of memory."""
        return self._probabilities_of(range(len(self.classes)))

    def _label(self, name: str) -> int:
        if name not in self.classes:
            raise SettingsError(no_such("class", name, self.classes, "result.classes"))
        return self.classes.index(name)

    def legend(self) -> list[tuple[str, str, float]]:
        """(class, colour as #rrggbb, coverage), largest first, absent classes left out."""
        rows = [
            (name, colour, share)
            for (name, share), colour in zip(self.coverage.items(), self.colours(), strict=True)
            if share > 0
        ]
        return sorted(rows, key=lambda row: -row[2])

    def colours(self) -> list[str]:
        """#rrggbb of each class, in label order."""
        return [
            "#{:02x}{:02x}{:02x}".format(*colour)
            for colour in palette(len(self.classes), self.has_background)
        ]

    def overlay(self, opacity: float = DEFAULT_OPACITY) -> NDArray[np.uint8]:
        """The image under its mask's colours: (H, W, 3) uint8."""
        if not 0 <= opacity <= 1:
            raise SettingsError(f"opacity is {opacity}: use a number from 0 to 1")
        colours = palette(len(self.classes), self.has_background)[self.labels].astype(np.float32)
        mixed = self.image * (1 - opacity) + colours * opacity
        return np.asarray(mixed + 0.5).astype(np.uint8)

    def save(self, path: str | os.PathLike[str]) -> None:
        """The mask as PNG: label indices, 8 bit with a palette, 16 bit from 256 classes on."""
        with atomic(path) as file:
            self.write_mask(file)

    def write_mask(self, file: IO[bytes]) -> None:
        """What `save` saves, into an open file."""
        from PIL import Image

        if len(self.classes) < 256:
            image = Image.fromarray(self.labels.astype(np.uint8))
            image.putpalette(palette(256, self.has_background).tobytes())
        else:
            image = Image.fromarray(self.labels.astype(np.uint16))
        image.save(file, format="PNG")

    def save_overlay(self, path: str | os.PathLike[str], opacity: float = DEFAULT_OPACITY) -> None:
        from PIL import Image

        formats = {".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".png": "PNG"}
        suffix = Path(path).suffix.lower()
        if suffix not in formats:
            raise SettingsError(f"{path}: an overlay ends in {', '.join(formats)}")
        options = {"quality": 92} if suffix != ".png" else {}
        with atomic(path) as file:
            Image.fromarray(self.overlay(opacity)).save(file, format=formats[suffix], **options)

    def save_scores(self, path: str | os.PathLike[str]) -> None:
        """Labels, scores and classes as a compressed .npz."""
        with atomic(path) as file:
            np.savez_compressed(
                file, labels=self.labels, scores=self.scores, classes=np.array(self.classes)
            )

    def export(self, path: str | os.PathLike[str], format: str, **options: Any) -> None:
        """As another tool reads it: one file, or a folder where the path has no suffix.

        format   coco, yolo, voc, cvat, labelme, geojson...: naclip formats
        options  instances, min_pixels, polygons, simplify: naclip.export.options
        """
        from naclip.export import of_result

        of_result.save(self, path, format, **options)

    def to_coco(self, **options: Any) -> dict[str, Any]:
        """COCO's JSON, of this one image."""
        from naclip.export import of_result

        return of_result.document(self, "coco", **options)

    def to_geojson(self, **options: Any) -> dict[str, Any]:
        """A feature a class, or a connected part with instances=True; a GeoTIFF's in degrees."""
        from naclip.export import of_result

        return of_result.document(self, "geojson", **options)

    def to_supervision(self, **options: Any) -> Any:
        """supervision's Detections."""
        from naclip.export import of_result

        return of_result.detections(self, **options)

    def to_row(self, **options: Any) -> dict[str, Any]:
        """For datasets.Dataset.from_list: image, mask, classes, coverage, scores."""
        from naclip.export import of_result

        return of_result.row(self, **options)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: classes with coverage and colour, and the report."""
        rows = zip(self.coverage.items(), self.colours(), strict=True)
        return {
            "size": {"height": self.size[0], "width": self.size[1]},
            "classes": [
                {
                    "label": label,
                    "name": name,
                    "coverage": round(share, 6),
                    "colour": colour,
                }
                for label, ((name, share), colour) in enumerate(rows)
            ],
            "mean_score": round(float(self.scores.mean()), 6),
            "report": asdict(self.report),
        }


def palette(count: int, background: bool) -> NDArray[np.uint8]:
    """(count, 3) colours, the same for a label wherever it appears; a background is black.

    Hues step by the golden ratio, so that neighbours in label order differ most.
    """
    colours = np.array(
        [
            colorsys.hsv_to_rgb((0.58 + label * 0.618034) % 1, *SHADES[label % len(SHADES)])
            for label in range(count)
        ]
    )
    colours[:1] *= not background
    return np.asarray(colours * 255 + 0.5).astype(np.uint8)
