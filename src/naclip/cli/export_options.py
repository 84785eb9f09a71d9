"""Options of commands that write other tools' formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from naclip.errors import UsageError
from naclip.export.options import EVERYTHING, Options

if TYPE_CHECKING:
    from naclip.results import Segmentation
    from naclip.vocabulary import Vocabulary

PANEL = "Export"
Instances = Annotated[
    bool,
    typer.Option(
        "--instances",
        help="Every connected part of a class is a region of its own",
        rich_help_panel=PANEL,
    ),
]
MinPixels = Annotated[
    int,
    typer.Option(min=1, help="Parts smaller than this are left out", rich_help_panel=PANEL),
]
Polygons = Annotated[
    bool,
    typer.Option(
        "--polygons",
        help="Outlines rather than run lengths, where a format has both",
        rich_help_panel=PANEL,
    ),
]
Simplify = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="PX",
        help="Outlines may be this many pixels off; 0: exact",
        rich_help_panel=PANEL,
    ),
]


def chosen(
    formats: Sequence[str], instances: bool, min_pixels: int, polygons: bool, simplify: float
) -> Options:
    options = Options(instances, min_pixels, polygons, simplify)
    if options != EVERYTHING and not formats:
        raise UsageError("--instances, --min-pixels, --polygons and --simplify go with a --format")
    return options


@contextmanager
def exporting(
    format: str | None,
    output: Path | None,
    words: Vocabulary,
    options: Options,
    images: Sequence[Path],
) -> Iterator[Callable[[Path, Segmentation], None]]:
    """What takes each result; the files of all of them are written at the end."""
    if format is None:
        yield lambda path, result: None
        return
    from naclip.export import formats
    from naclip.export.item import Classes, Item, named
    from naclip.export.saving import Export

    found = formats.find(format)
    if output is None:
        raise UsageError(f"--format {format} needs a place: -o FILE, or -o FOLDER")
    classes = Classes.of(words)
    names = dict(zip(images, named(images), strict=True))
    with Export(output, found, classes, options, len(images)) as export:
        yield lambda path, result: export.add(Item.of(result, *names[path]))
