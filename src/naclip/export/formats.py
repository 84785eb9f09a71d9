"""The formats by name."""

from __future__ import annotations

from naclip.errors import SettingsError, no_such
from naclip.export import (
    cityscapes,
    coco,
    cvat,
    geojson,
    label_studio,
    labelme,
    panoptic,
    rows,
    voc,
    yolo,
)
from naclip.export.writer import Format

FORMATS: dict[str, Format] = {
    "coco": coco.FORMAT,
    "coco-panoptic": panoptic.FORMAT,
    "yolo": yolo.FORMAT,
    "voc": voc.FORMAT,
    "cityscapes": cityscapes.FORMAT,
    "cvat": cvat.FORMAT,
    "labelme": labelme.FORMAT,
    "label-studio": label_studio.FORMAT,
    "geojson": geojson.FORMAT,
    "datasets": rows.FORMAT,
}


def find(name: str) -> Format:
    """A format whose libraries are there."""
    if name not in FORMATS:
        raise SettingsError(no_such("format", name, FORMATS, "naclip formats"))
    FORMATS[name].check(name)
    return FORMATS[name]
