"""`naclip`: the commands by name, and what happens to errors."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from naclip import __version__
from naclip.cli import (
    batch,
    bench,
    compare,
    convert,
    datasets,
    demo,
    evaluate,
    export,
    lists,
    reproduce,
    segment,
    serve,
)
from naclip.cli.options import Command
from naclip.cli.printing import escape_what_cannot_be_printed
from naclip.errors import NaclipError


class Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # here: Typer would end without a word
            print("naclip: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="naclip",
    cls=Commands,
    help="Label every pixel of an image with words of your own. Start with: naclip segment --help",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("segment", cls=Command)(segment.segment)
app.command("batch", cls=Command)(batch.batch)
app.command("convert")(convert.convert)
app.command("demo")(demo.demo)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(reproduce.app, name="reproduce")
app.command("compare")(compare.compare)
app.command("datasets")(datasets.datasets)
app.add_typer(export.app, name="export")
app.command("serve")(serve.serve)
app.command("bench")(bench.bench)
app.command("formats")(lists.formats)
app.command("methods")(lists.methods)
app.command("models")(lists.models)
app.command("vocabularies")(lists.vocabularies)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"naclip {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version"),
    ] = None,
) -> None:
    pass


def main() -> None:
    escape_what_cannot_be_printed()
    try:
        app()
    except NaclipError as error:
        print(f"naclip: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
