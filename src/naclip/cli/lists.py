"""`naclip methods`, `models`, `formats`, `vocabularies`: the tables, printed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from naclip.cli.printing import print_json

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")]


def methods(as_json: Json = False) -> None:
    """List the ways of reading CLIP's last block(s)."""
    from naclip.settings import METHODS, METHODS_ABOUT

    rows = [
        {
            "method": name,
            "similarity": method.similarity,
            "neighbours": method.neighbours,
            "block": method.block,
            "about": METHODS_ABOUT[name],
        }
        for name, method in METHODS.items()
    ]
    show(rows, as_json)


def models(as_json: Json = False) -> None:
    """List the models known by name; paths and hub ids work too."""
    from naclip.clip.sources import MODELS

    rows = [
        {
            "model": model.name,
            "download": f"{model.megabytes} MB",
            "hub": model.hub,
            "file": model.openai_file,
            "about": model.about,
        }
        for model in MODELS.values()
    ]
    show(rows, as_json)


def formats(as_json: Json = False) -> None:
    """List the formats of other tools that results can be written in."""
    from naclip.export.formats import FORMATS

    rows = [
        {
            "format": name,
            "about": format.about,
            "files": format.suffix or "folder",
            "holes": format.holes,
            "scores": format.scores,
            "instances": format.instances,
        }
        for name, format in FORMATS.items()
    ]
    show(rows, as_json)


def vocabularies(
    name: Annotated[str, typer.Argument(help="Print this one's classes and names")] = "",
    as_json: Json = False,
) -> None:
    """List the benchmarks' vocabularies, or the classes and names of one (or of a file)."""
    from naclip import vocabulary

    if name:
        words = vocabulary.load(name)
        named = zip(words.classes, words.names, strict=True)
        show([{"class": title, "names": ", ".join(names)} for title, names in named], as_json)
        return
    loaded = {name: vocabulary.load(name) for name in vocabulary.BENCHMARKS}
    rows = [
        {
            "vocabulary": name,
            "classes": len(words.classes),
            "names": len(words.prompts),
            "background": "yes" if words.has_background else "no",
            "about": words.title,
        }
        for name, words in loaded.items()
    ]
    show(rows, as_json)


def show(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows, indent=2)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for number, column in enumerate(rows[0]):  # the first is to be typed: in one piece
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)
