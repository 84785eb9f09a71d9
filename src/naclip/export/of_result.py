"""What a Segmentation's methods of export do."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from naclip.export import formats, rows, saving
from naclip.export.item import Item
from naclip.export.options import Options

if TYPE_CHECKING:
    from supervision import Detections

    from naclip.results import Segmentation


def save(result: Segmentation, path: str | os.PathLike[str], format: str, **options: Any) -> None:
    item, chosen, found = Item.of(result), Options.of(options), formats.find(format)
    with saving.Export(path, found, item.classes, chosen) as export:
        export.add(item)


def document(result: Segmentation, format: str, **options: Any) -> dict[str, Any]:
    """Of a format that is one JSON."""
    contents = saving.document(Item.of(result), formats.find(format), Options.of(options))
    made: dict[str, Any] = json.loads(contents)
    return made


def detections(result: Segmentation, **options: Any) -> Detections:
    from naclip.export.detections import detections

    return detections(Item.of(result), Options.of(options))


def row(result: Segmentation, **options: Any) -> dict[str, Any]:
    return rows.row(Item.of(result), Options.of(options))
