"""`naclip batch`: many images in, masks and a table out; killed and started again at will."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from naclip.cli import options
from naclip.cli.export_options import Instances, MinPixels, Polygons, Simplify, chosen
from naclip.cli.ray_options import (
    ANY_NUMBER,
    ActorCpus,
    ActorGpus,
    Actors,
    Address,
    BlocksOrRay,
    check_unused,
    ray_cluster,
    split_engine,
)
from naclip.export.options import EVERYTHING

if TYPE_CHECKING:
    from naclip.bulk.run import Finished

SOME_FAILED = 3
SHOWN = 20  # failures; all are in failures.json


@options.with_settings
def batch(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Folder, glob, .tar, list of paths (.txt .csv .parquet), or a URL of one",
        ),
    ],
    output: Annotated[str, typer.Argument(help="A new folder or URL; or that of a run to go on")],
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
    calibrate: options.CalibrateOption = None,
    masks: Annotated[bool, typer.Option(help="Mask PNGs that mirror the input")] = True,
    overlays: Annotated[bool, typer.Option("--overlays", help="Images under their masks")] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Parquet: path, classes, coverage, run lengths")
    ] = False,
    format: Annotated[
        list[str] | None,
        typer.Option(help="Also for another tool (naclip formats); repeat for more"),
    ] = None,
    instances: Instances = EVERYTHING.instances,
    min_pixels: MinPixels = EVERYTHING.min_pixels,
    polygons: Polygons = EVERYTHING.polygons,
    simplify: Simplify = EVERYTHING.simplify,
    chunk: Annotated[
        int, typer.Option(help="Images that go through the model together", min=1)
    ] = 8,
    readers: Annotated[int, typer.Option(help="Threads that read", min=1)] = 2,
    writers: Annotated[int, typer.Option(help="Threads that write", min=1)] = 2,
    engine: BlocksOrRay = "auto",
    address: Address = None,
    actors: Actors = ANY_NUMBER,
    actor_cpus: ActorCpus = 1,
    actor_gpus: ActorGpus = 0,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try images again that failed before")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the output of an earlier run first")
    ] = False,
    *,
    changes: dict[str, Any],
) -> None:
    """Segment many images; run the same command again to go on after any interruption."""
    from naclip import vocabulary as words_
    from naclip.bulk.exports import Exports
    from naclip.bulk.progress import Bar
    from naclip.bulk.run import Job, LocalMachine, Machines, run
    from naclip.bulk.worker import ModelChoice, Outputs
    from naclip.clip.sources import default_settings
    from naclip.settings import find_preset

    on_ray, blocks = split_engine(engine)
    base = find_preset(preset) if preset else default_settings(model)
    settings = base.updated(**changes)
    given = words_.choose(classes or [], vocabulary or preset)
    names = options.background_names(background)
    options_ = chosen(format or [], instances, min_pixels, polygons, simplify)
    exports = Exports(tuple(format or ()), options_)
    job = Job(
        source,
        output,
        words_.complete(given, names, settings.decoding.threshold),
        settings,
        words_.templates(templates),
        ModelChoice(model, device, precision, activation, blocks, tuple(calibrate or ())),  # type: ignore[arg-type]
        Outputs(masks, overlays, table, exports),
        chunk,
        retry_failed,
        overwrite,
    )
    machines: Machines = LocalMachine(readers, writers)
    if on_ray:
        machines = ray_cluster(address, actors, actor_cpus, actor_gpus)
    else:
        check_unused(address, actors, actor_cpus, actor_gpus)
    with Bar() as progress:
        finished = run(job, machines, progress)
    _print(finished)
    if finished.failed:
        raise typer.Exit(SOME_FAILED)


def _print(finished: Finished) -> None:
    done = finished.images - len(finished.failed)
    print(f"{done} of {finished.images} images are in {finished.output}")
    for name, reason in list(finished.failed.items())[:SHOWN]:
        print(f"failed: {reason if name in reason else f'{name}: {reason}'}", file=sys.stderr)
    if len(finished.failed) > SHOWN:
        print(f"... and {len(finished.failed) - SHOWN} more", file=sys.stderr)
    if finished.failed:
        print("all are in failures.json; --retry-failed tries them again", file=sys.stderr)
