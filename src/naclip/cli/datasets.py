"""`naclip datasets`: what can be evaluated, and how its files must lie."""

from __future__ import annotations

from typing import Annotated

import typer

from naclip.cli.lists import Json, show


def datasets(
    name: Annotated[str, typer.Argument(help="Print this one's page, licence and tree")] = "",
    as_json: Json = False,
) -> None:
    """List the data sets that naclip evaluate knows, or how to get one and where to put it."""
    from naclip.evaluate.catalogue import entries, entry

    if not name:
        show(entries(), as_json)
    elif as_json:
        show([entry(name)], as_json)
    else:
        for key, value in entry(name).items():
            text = str(value)
            print(f"{key}:\n{text}" if "\n" in text else f"{key}: {text}")
