"""Data sets as `--data` gives them, several at a time.

--data voc=DIR        both benchmarks of a family: voc21 and voc20
--data voc21=DIR      one benchmark
--data DIR            every benchmark whose files are found there
--data folder=DIR     your own; `--data synthetic` is drawn
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from naclip.errors import DataError, SettingsError, no_such
from naclip.evaluate.datasets import BENCHMARKS, FAMILIES, DataSet, is_there
from naclip.evaluate.evaluation import OWN, open_data
from naclip.settings import Settings


def open_given(
    given: Sequence[str], wanted: Sequence[str], limit: int | None, defaults: Settings
) -> dict[str, DataSet]:
    """Data sets by name, in the paper's order; of the benchmarks only those wanted."""
    folders: dict[str, Path | None] = {}
    for text in given:
        for name, folder in _named(text, wanted):
            if name in folders:
                raise SettingsError(f"--data gives {name} twice: {folders[name]} and {folder}")
            folders[name] = folder
    if not folders:
        raise SettingsError(
            f"no data: use --data NAME=DIR, once for each of {', '.join(wanted)} (a part of them "
            "will do), or --data DIR where all of them lie (naclip datasets)"
        )
    order = [name for name in (*BENCHMARKS, *OWN) if name in folders]
    return {name: open_data(name, folders[name], defaults).limited(limit) for name in order}


def _named(text: str, wanted: Sequence[str]) -> Iterable[tuple[str, Path | None]]:
    name, equals, path = text.partition("=")
    if text == "synthetic":
        return [(text, None)]
    if not equals:
        folder = Path(text)
        there = [name for name in wanted if is_there(name, folder)]
        if not there:
            raise DataError(
                f"{folder}: holds none of {', '.join(wanted)} as naclip datasets describes them: "
                "use --data NAME=DIR to be told what is missing"
            )
        return [(name, folder) for name in there]
    if name in BENCHMARKS or name in OWN:
        return [(name, Path(path))]
    if name not in FAMILIES:
        known = [*FAMILIES, *BENCHMARKS, *OWN]
        raise SettingsError("--data: " + no_such("data set", name, known, "naclip datasets"))
    members = [b.name for b in BENCHMARKS.values() if b.family == name]
    return [(member, Path(path)) for member in members if member in wanted]
