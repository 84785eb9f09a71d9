"""`naclip evaluate`: one data set under one setting, and its document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from naclip.errors import OutputError, SettingsError, no_such
from naclip.evaluate import analysis
from naclip.evaluate.analysis import Analysis
from naclip.evaluate.datasets import BENCHMARKS, DataSet, open_benchmark
from naclip.evaluate.drawn import open_drawn
from naclip.evaluate.folder import open_folder
from naclip.evaluate.jobs import Job
from naclip.evaluate.report import document, write_json
from naclip.evaluate.run import Options, Progress, run
from naclip.files import cache_folder
from naclip.pipeline import Segmenter
from naclip.settings import Settings
from naclip.vocabulary import Vocabulary

MAIN = "main"
OWN = ("folder", "synthetic")


def open_data(name: str, folder: Path | None, defaults: Settings) -> DataSet:
    """A data set by its name, and where it is; benchmarks bring settings of their own."""
    known = [*BENCHMARKS, *OWN]
    if name not in known:
        raise SettingsError(no_such("data set", name, known, "naclip datasets"))
    if name == "synthetic":
        if folder is not None:
            raise SettingsError("synthetic is drawn, not read: leave --data out")
        return open_drawn(defaults)
    if folder is None:
        raise SettingsError(
            f"{name} needs --data DIR: where its files are (naclip datasets {name})"
        )
    return open_folder(folder, defaults) if name == "folder" else open_benchmark(name, folder)


def check_analyses(names: Sequence[str]) -> list[Analysis]:
    for name in names:
        if name not in get_args(Analysis):
            raise SettingsError(no_such("analysis", name, get_args(Analysis), "docs/evaluation.md"))
    return list(dict.fromkeys(names))  # type: ignore[arg-type]


def evaluate(
    segmenter: Segmenter,
    data: DataSet,
    settings: Settings,
    options: Options,
    progress: Progress,
    *,
    words: Vocabulary | None = None,
    analyses: Sequence[Analysis] = (),
    target: Path | None = None,
) -> dict[str, Any]:
    """Run, write the document to `target`, and return it."""
    if words is not None and words.classes != data.words.classes:
        raise SettingsError(
            f"the vocabulary's {len(words.classes)} classes are not the {len(data.words.classes)} "
            f"of {data.name} in their order: only names may differ"
        )
    if target is not None and target.is_dir():
        raise OutputError(f"{target} is a folder: expected the name of a JSON file to write")
    main = Job(MAIN, data, words or data.words, settings)
    jobs = [main, *(job for name in analyses for job in analysis.jobs_for(name, main))]
    folder = target.parent if target else cache_folder() / "evaluations"
    finished = run(segmenter, jobs, folder, options, progress)
    results = finished.results
    made = document(results[MAIN], segmenter, options)
    if analyses:
        made["analysis"] = analysis.summary(analyses, results[MAIN], results)
    if target:
        write_json(target, made)
    finished.forget_records()
    return made
