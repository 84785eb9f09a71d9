"""`naclip reproduce table` and `naclip reproduce figure`: what the paper shows, run again."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from naclip.cli import options
from naclip.cli.evaluate import LimitOption, ResumeOption, SkipOption, WorkersOption

app = typer.Typer(
    help="Run a table or figure of the paper, or compare the refiners.", no_args_is_help=True
)

GivenOption = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        help="NAME=DIR, repeated (voc=DIR is voc21 and voc20); DIR with all of them; synthetic",
    ),
]
OutOption = Annotated[Path, typer.Option(help="Folder for the results")]
OUT = Path("reproduction")


@app.command()
def table(
    name: Annotated[
        str, typer.Argument(help="main, backbones, attention, architecture, sigma-heuristic")
    ],
    data: GivenOption = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="The paper's, unless given; repeat")
    ] = None,
    limit: LimitOption = None,
    out: OutOption = OUT,
    method: Annotated[
        list[str] | None, typer.Option(help="Only rows of this method; repeat for more")
    ] = None,
    refine_all: Annotated[
        bool, typer.Option("--refine-all", help="Refined rows of every method, not the paper's two")
    ] = False,
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="A JSON of each run too, for naclip compare")
    ] = False,
    workers: WorkersOption = 2,
    resume: ResumeOption = False,
    skip_errors: SkipOption = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
    engine: options.EngineOption = "auto",
    calibrate: options.CalibrateOption = None,
) -> None:
    """Run a table's rows on the data sets that are given, beside the paper's numbers."""
    from naclip.evaluate import reproduce
    from naclip.evaluate.progress import Bar
    from naclip.evaluate.run import Options
    from naclip.evaluate.tables import BACKBONES
    from naclip.pipeline import load

    if name == "sigma-heuristic":
        written = reproduce.sigma_heuristic(out)
    else:
        models = model or (BACKBONES if name == "backbones" else [options.MODEL])
        run = Options(workers, skip_errors, resume)
        request = reproduce.Request(
            models, data or [], limit, out, run, keep_runs, refine_all, method or []
        )
        loader = functools.partial(
            load,
            device=device,  # type: ignore[arg-type]
            precision=precision,  # type: ignore[arg-type]
            engine=engine,  # type: ignore[arg-type]
            calibration=calibrate or (),
        )
        with Bar() as bar:
            written = reproduce.table(name, request, loader, bar)
    print(written[0].read_text("utf-8"))
    print("\n".join(f"wrote {path}" for path in written))


@app.command()
def figure(
    name: Annotated[str, typer.Argument(help="attention, schematic, qualitative or sigma")],
    image: Annotated[
        Path | None, typer.Argument(help="For attention and schematic; a drawn scene if left out")
    ] = None,
    patch: Annotated[
        list[str] | None, typer.Option(help="ROW,COLUMN of a patch, from 0; repeat for more")
    ] = None,
    data: GivenOption = None,
    sample: Annotated[
        list[str] | None, typer.Option(help="qualitative: an image's name in its data set; repeat")
    ] = None,
    model: options.ModelOption = options.MODEL,
    limit: LimitOption = None,
    out: OutOption = OUT,
    workers: WorkersOption = 2,
    resume: ResumeOption = False,
    skip_errors: SkipOption = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
    engine: options.EngineOption = "auto",
    calibrate: options.CalibrateOption = None,
) -> None:
    """Draw a figure as PNG and PDF, with its numbers as JSON."""
    from naclip.evaluate.figures import draw
    from naclip.evaluate.progress import Bar
    from naclip.evaluate.run import Options
    from naclip.pipeline import load

    draw.check(name)
    run = Options(workers, skip_errors, resume)
    request = draw.Request(image, patch or [], sample or [], data or [], limit, out, run, model)
    segmenter = load(
        model,
        device=device,  # type: ignore[arg-type]
        precision=precision,  # type: ignore[arg-type]
        engine=engine,  # type: ignore[arg-type]
        calibration=calibrate or (),
    )
    with Bar() as bar:
        written = draw.figure(name, request, segmenter, bar)
    print("\n".join(f"wrote {path}" for path in written))


@app.command()
def refiners(
    name: Annotated[
        str, typer.Argument(help="A benchmark (naclip datasets), folder or synthetic")
    ] = "synthetic",
    data: Annotated[Path | None, typer.Option(help="Folder of the data set")] = None,
    model: options.ModelOption = options.MODEL,
    limit: LimitOption = None,
    out: OutOption = OUT,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
    engine: options.EngineOption = "auto",
) -> None:
    """Compare the refiners on one data set: mIoU, boundary F-score, time (docs/refiners.md)."""
    from rich.console import Console
    from rich.progress import track

    from naclip.clip.sources import default_settings
    from naclip.evaluate import refiners as comparing
    from naclip.evaluate.evaluation import open_data
    from naclip.evaluate.record import made_folder
    from naclip.pipeline import load

    chosen = open_data(name, data, default_settings(model)).limited(limit)
    made_folder(out)
    segmenter = load(
        model,
        device=device,  # type: ignore[arg-type]
        precision=precision,  # type: ignore[arg-type]
        engine=engine,  # type: ignore[arg-type]
    )
    written = comparing.compare(
        segmenter, chosen, out, lambda some: track(some, chosen.name, console=Console(stderr=True))
    )
    print(written[0].read_text("utf-8"))
    print("\n".join(f"wrote {path}" for path in written))
