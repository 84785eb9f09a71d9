"""`naclip segment`: words and images in, masks out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from naclip.cli import options
from naclip.cli.export_options import (
    Instances,
    MinPixels,
    Polygons,
    Simplify,
    chosen,
    exporting,
)
from naclip.cli.printing import print_json
from naclip.cli.targets import Targets
from naclip.errors import FailureError, UsageError
from naclip.export.options import EVERYTHING

if TYPE_CHECKING:
    from naclip.results import Segmentation


@options.with_settings
def segment(
    images: Annotated[list[Path], typer.Argument(help="Image files", show_default=False)],
    classes: Annotated[
        list[str] | None,
        typer.Option("-c", "--class", help="A class: cat, or sofa=couch,settee; repeat for more"),
    ] = None,
    vocabulary: Annotated[
        str | None, typer.Option(help="A benchmark's (naclip vocabularies) or your own file")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Vocabulary and settings of a benchmark of the paper")
    ] = None,
    background: options.BackgroundOption = None,
    templates: Annotated[
        str, typer.Option(help="Prompts around a name: imagenet80, plain, or a file of lines")
    ] = "imagenet80",
    model: options.ModelOption = options.MODEL,
    activation: options.ActivationOption = None,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
    engine: options.EngineOption = "auto",
    calibrate: options.CalibrateOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Mask PNG, or what --format says; a folder for many; - for a pipe",
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Write -o for another tool: one of naclip formats")
    ] = None,
    overlay: Annotated[
        Path | None, typer.Option(help="Image under the mask's colours (png, jpg, webp)")
    ] = None,
    scores: Annotated[Path | None, typer.Option(help="Labels and scores as .npz")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
    instances: Instances = EVERYTHING.instances,
    min_pixels: MinPixels = EVERYTHING.min_pixels,
    polygons: Polygons = EVERYTHING.polygons,
    simplify: Simplify = EVERYTHING.simplify,
    *,
    changes: dict[str, Any],
) -> None:
    """Label every pixel of images with one of the words."""
    from naclip import vocabulary as words_
    from naclip.clip.sources import default_settings
    from naclip.pipeline import load
    from naclip.settings import find_preset

    base = find_preset(preset) if preset else default_settings(model)
    settings = base.updated(**changes)
    given = words_.choose(classes or [], vocabulary or preset)
    names = options.background_names(background)
    words = words_.complete(given, names, settings.decoding.threshold)
    if format and output == Path("-"):
        raise UsageError("--format writes a file or a folder: name one instead of -")
    mask = None if format else output
    targets = Targets.plan(images, {"mask": mask, "overlay": overlay, "scores": scores})
    if as_json and targets.use_stdout:
        raise UsageError("--json has standard output to itself: write the mask to a file")
    options_ = chosen([format] if format else [], instances, min_pixels, polygons, simplify)
    prompts = words_.templates(templates)
    done: list[dict[str, Any]] = []
    failures: list[dict[str, str]] = []
    with exporting(format, output, words, options_, images) as export:
        segmenter = load(
            model,
            device=device,  # type: ignore[arg-type]
            precision=precision,  # type: ignore[arg-type]
            engine=engine,  # type: ignore[arg-type]
            activation=activation,
            calibration=calibrate or (),
        )
        for path in _progress(images, quiet=as_json):
            try:
                result = segmenter(path, words, settings=settings, templates=prompts)
                targets.write(path, result)
                export(path, result)
            except FailureError as error:
                print(f"naclip: {error}", file=sys.stderr)
                failures.append({"image": str(path), "error": str(error)})
                continue
            done.append({"image": str(path), **result.to_dict()})
            if not as_json:
                written = [output] if format and output else []
                _print_legend(path, result, [*targets.of(path), *written], targets.use_stdout)
    if as_json:
        print_json({"images": done, "failures": failures})
    if failures:
        raise typer.Exit(1)


def _progress(images: list[Path], quiet: bool) -> Iterator[Path]:
    if len(images) == 1 or quiet or not sys.stderr.isatty():
        yield from images
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(images, "Segmenting", console=Console(stderr=True))


def _print_legend(path: Path, result: Segmentation, written: list[Path], aside: bool) -> None:
    """aside: to standard error, where a mask goes to standard output."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    seconds = sum(result.report.seconds.values())
    height, width = result.size
    title = f"{path}: {width}x{height}, {result.report.windows} windows, {seconds:.1f} s"
    table = Table(box=box.SIMPLE)
    table.add_column("")
    table.add_column("class")
    table.add_column("share", justify="right")
    for name, colour, share in result.legend():
        table.add_row(Text("██", style=colour), Text(name), f"{share:.1%}")
    console = Console(stderr=aside)
    console.print(title, markup=False, highlight=False, soft_wrap=True)
    console.print(table)
    for note in result.report.notes:
        console.print(f"note: {note}", markup=False)
    if written:
        console.print(f"wrote {', '.join(map(str, written))}", markup=False, soft_wrap=True)
    else:
        console.print("nothing saved: use -o MASK.png or --overlay FILE", markup=False)
