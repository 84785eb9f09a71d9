"""The formats by name."""

from __future__ import annotations

from naclip.errors import SettingsError, no_such
from naclip.export import coco, label_studio
from naclip.export.writer import Format

FORMATS: dict[str, Format] = {
    "coco": coco.FORMAT,
    "label-studio": label_studio.FORMAT,
}


def find(name: str) -> Format:
    """A format whose libraries are there."""
    if name not in FORMATS:
        raise SettingsError(no_such("format", name, FORMATS, "naclip formats"))
    FORMATS[name].check(name)
    return FORMATS[name]
