"""`naclip compare`: two evaluations of the same images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    a: Annotated[Path, typer.Argument(help="JSON of naclip evaluate")],
    b: Annotated[Path, typer.Argument(help="Another of the same data set")],
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the comparison to this file")
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the images that changed most", min=1)] = 10,
    pictures: Annotated[
        Path | None,
        typer.Option(help="Folder for pictures of them, side by side (needs --save-masks before)"),
    ] = None,
) -> None:
    """What changed from A to B: classes, images, and whether it is more than chance."""
    from rich.console import Console

    from naclip.evaluate import compare as comparing
    from naclip.evaluate.report import read_json, write_json
    from naclip.evaluate.show import show_comparison

    one, other = read_json(a), read_json(b)
    made = comparing.compare(one, other)
    if json_file:
        write_json(json_file, made)
    if pictures:
        names = [entry["image"] for entry in made["by_image"][:top]]
        comparing.draw(one, other, names, pictures)
    show_comparison(made, Console(), top)
