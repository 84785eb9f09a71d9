"""`naclip evaluate`: how good a method is on a data set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from naclip.cli import options
from naclip.cli.ray_options import (
    ActorCpus,
    ActorGpus,
    Actors,
    Address,
    BlocksOrRay,
    check_unused,
    ray_cluster,
    split_engine,
)

DataOption = Annotated[
    Path | None, typer.Option(help="Where the data set's files are (naclip datasets NAME)")
]
LimitOption = Annotated[int | None, typer.Option(help="Only the first images, this many")]
WorkersOption = Annotated[int, typer.Option(help="Threads that read images ahead", min=1)]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run")]
SkipOption = Annotated[
    bool, typer.Option("--skip-errors", help="Leave unreadable images out, and list them")
]
TemplatesOption = Annotated[
    str, typer.Option(help="Prompts around a name: imagenet80, plain, or a file of lines")
]


@options.with_settings
def evaluate(
    dataset: Annotated[str, typer.Argument(help="A data set's name (naclip datasets)")],
    data: DataOption = None,
    limit: LimitOption = None,
    workers: WorkersOption = 2,
    resume: ResumeOption = False,
    skip_errors: SkipOption = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything to this file")
    ] = None,
    save_masks: Annotated[
        Path | None, typer.Option(help="Folder for the predicted masks, PNG of label indices")
    ] = None,
    analyse: Annotated[
        list[str] | None,
        typer.Option(help="threshold: mIoU over thresholds; names: without synonyms, background"),
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Other names for the same classes, from a file")
    ] = None,
    templates: TemplatesOption = "imagenet80",
    model: options.ModelOption = options.MODEL,
    activation: options.ActivationOption = None,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
    calibrate: options.CalibrateOption = None,
    engine: BlocksOrRay = "auto",
    address: Address = None,
    actors: Actors = "1,1000",
    actor_cpus: ActorCpus = 1,
    actor_gpus: ActorGpus = 0,
    *,
    changes: dict[str, Any],
) -> None:
    """Measure a method on a data set: IoU of each class, mIoU, and the paper's number."""
    from rich.console import Console

    from naclip import vocabulary as words_
    from naclip.bulk.worker import ModelChoice
    from naclip.clip.sources import default_settings
    from naclip.evaluate import evaluation
    from naclip.evaluate.progress import Bar
    from naclip.evaluate.run import Options
    from naclip.evaluate.show import show

    opened = evaluation.open_data(dataset, data, default_settings(model)).limited(limit)
    settings = opened.settings.updated(**changes)
    asked = evaluation.check_analyses(analyse or [])
    words = words_.load(vocabulary) if vocabulary else None
    prompts = words_.templates(templates)
    run_options = Options(workers, skip_errors, resume, save_masks, prompts)
    on_ray, blocks = split_engine(engine)
    images = tuple(calibrate or ())
    choice = ModelChoice(model, device, precision, activation, blocks, images)  # type: ignore[arg-type]
    if on_ray:
        from naclip.evaluate.spread import Spread

        machines = ray_cluster(address, actors, actor_cpus, actor_gpus)
        segmenter, choice = choice.settled(machines.device)
        run_options = replace(run_options, spread=Spread(machines, choice))
    else:
        check_unused(address, actors, actor_cpus, actor_gpus)
        segmenter = choice.open()
    with Bar() as progress:
        document = evaluation.evaluate(
            segmenter,
            opened,
            settings,
            run_options,
            progress,
            words=words,
            analyses=asked,
            target=json_file,
        )
    show(document, Console())
