"""`naclip convert`: masks that are on disk already, as another tool reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from naclip.cli.export_options import Instances, MinPixels, Polygons, Simplify
from naclip.export.options import EVERYTHING


def convert(
    masks: Annotated[
        Path, typer.Argument(help="Output of naclip batch, or a folder of index PNGs")
    ],
    format: Annotated[str, typer.Option(help="One of: naclip formats")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="A folder; or the format's one file")
    ],
    classes: Annotated[
        Path | None,
        typer.Option(help="File of words, a line a class, label 0 first; of a batch known"),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images: full names, georeferences")
    ] = None,
    void: Annotated[
        int | None, typer.Option(help="Value of pixels of no class; else 255, or 65535 of 16 bits")
    ] = None,
    instances: Instances = EVERYTHING.instances,
    min_pixels: MinPixels = EVERYTHING.min_pixels,
    polygons: Polygons = EVERYTHING.polygons,
    simplify: Simplify = EVERYTHING.simplify,
) -> None:
    """Turn masks into COCO, YOLO, VOC, CVAT, labelme, GeoJSON... (naclip formats)."""
    from naclip.export.convert import convert as run

    count = run(
        masks,
        output,
        format,
        classes=classes,
        images=images,
        void=void,
        instances=instances,
        min_pixels=min_pixels,
        polygons=polygons,
        simplify=simplify,
    )
    print(f"{count} masks are in {output} as {format}")
