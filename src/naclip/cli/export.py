"""`naclip export`: the model in forms that run without naclip."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from naclip.cli import options

app = typer.Typer(help="Write the model in a form that runs without naclip", no_args_is_help=True)


@app.callback()
def root() -> None:
    pass  # keeps `onnx` a command of its own name while it is the only one


@app.command("onnx", cls=options.Command)
@functools.partial(options.with_settings, leave_out=("refinement",))
def onnx(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A known model, a path or a hub id")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the graphs")],
    classes: Annotated[
        list[str] | None,
        typer.Option("-c", "--class", help="A class whose vectors are written: sofa=couch,settee"),
    ] = None,
    vocabulary: Annotated[
        str | None, typer.Option(help="A benchmark's (naclip vocabularies) or your own file")
    ] = None,
    background: options.BackgroundOption = None,
    templates: Annotated[
        str, typer.Option(help="Prompts around a name: imagenet80, plain, or a file of lines")
    ] = "imagenet80",
    activation: options.ActivationOption = None,
    *,
    changes: dict[str, Any],
) -> None:
    """Write vision and text graphs, tokenizer and config, compared with torch before."""
    from naclip import vocabulary as words_
    from naclip.clip.model import open_model
    from naclip.onnx import export

    prompts = words_.templates(templates)
    opened = open_model(model, activation)
    settings = opened.defaults.updated(**changes)
    words = None
    if classes or vocabulary or background:
        given = words_.choose(classes or [], vocabulary)
        names = options.background_names(background)
        words = words_.complete(given, names, settings.decoding.threshold)
    exported = export(opened, output, settings, words, prompts)
    for graph, difference in exported.differences.items():
        print(f"{graph} graph: differs from torch by at most {difference:.1e}")
    print(f"wrote {', '.join(map(str, exported.files))}")
