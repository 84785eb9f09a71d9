"""`naclip datasets`: what can be evaluated, and how its files must lie."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from naclip.cli.lists import Json, show

INDENT = 13  # wider than the longest name


def datasets(
    name: Annotated[str, typer.Argument(help="Print this one's page, licence and tree")] = "",
    as_json: Json = False,
) -> None:
    """List the data sets that naclip evaluate knows, or how to get one and where to put it."""
    from naclip.evaluate.catalogue import entries, entry

    if as_json:
        show([entry(name)] if name else entries(), as_json)
    elif name:
        for key, value in entry(name).items():
            text = str(value)
            print(f"{key}:\n{text}" if "\n" in text else f"{key}: {text}")
    else:
        print("\n\n".join(_paragraph(row) for row in entries()))
        print("\nHow the files must lie: naclip datasets NAME")


def _paragraph(row: dict[str, Any]) -> str:
    """A line for each thing to know: a table would break names and addresses."""
    counts = f"{row['images']} images, {row['classes']} classes; {row['size']}"
    lines = [row["about"], counts, f"licence: {row['licence']}", row["page"]]
    return str(row["dataset"]).ljust(INDENT) + ("\n" + " " * INDENT).join(lines)
