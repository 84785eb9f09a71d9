"""`naclip reproduce table`: a table of the paper, run and written as Markdown and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from naclip.clip.sources import default_settings
from naclip.evaluate import heuristic, markdown, published, tables
from naclip.evaluate.datasets import BENCHMARKS, DataSet
from naclip.evaluate.given import open_given
from naclip.evaluate.record import made_folder
from naclip.evaluate.report import document, model_of, times, versions, write_json
from naclip.evaluate.run import Finished, Options, Progress, run
from naclip.files import atomic
from naclip.pipeline import Segmenter

FORMAT = "naclip table 1"


@dataclass(frozen=True)
class Request:
    """What is to be run, and where the results go."""

    models: Sequence[str]
    given: Sequence[str]  # data sets: naclip.evaluate.given
    limit: int | None
    out: Path
    options: Options
    keep_runs: bool = False
    refine_all: bool = False
    methods: Sequence[str] = ()  # only these rows


def table(
    name: str, request: Request, load: Callable[[str], Segmenter], progress: Progress
) -> list[Path]:
    """Run the rows of a table that can be run; the files that were written."""
    benchmarks = tables.BACKBONE_BENCHMARKS if name == "backbones" else tuple(BENCHMARKS)
    tables.rows_of(name, None, request.refine_all, request.methods)  # errors before any work
    made_folder(request.out)
    sections, subsets, done = [], [], []
    for model in request.models:
        data = open_given(request.given, benchmarks, request.limit, default_settings(model))
        segmenter = load(model)
        known = published.known_model(segmenter.model)
        rows = tables.rows_of(name, known, request.refine_all, request.methods)
        jobs = tables.jobs_of(rows, data, segmenter.model.shape.vision.layers)
        done.append(run(segmenter, jobs, request.out / "records", request.options, progress))
        subsets += subsets_of(data)
        sections.append(
            {
                "model": model_of(segmenter),
                "known_as": known,
                "published_for": known if name == "backbones" else published.MAIN_MODEL,
                "rows": tables.table_rows(rows, benchmarks, done[-1].results),
            }
        )
        if request.keep_runs:
            _keep_runs(request, segmenter, done[-1])
    subsets = list(dict.fromkeys(subsets))
    made = {
        "format": FORMAT,
        "table": name,
        "title": tables.TITLES[name] + (" (SUBSET OF THE IMAGES)" if subsets else ""),
        "subsets": subsets,
        "benchmarks": list(benchmarks),
        "models": sections,
        "prompts": request.options.prompts,
        "versions": versions(),
        "times": times(sum(finished.seconds for finished in done)),
    }
    paths = _write(request.out, f"table-{name}", made, markdown.table(made))
    for finished in done:
        finished.forget_records()
    return paths


def sigma_heuristic(out: Path) -> list[Path]:
    """The appendix's table: exact, from nothing but arithmetic."""
    made_folder(out)
    printed = published.tables()["sigma_heuristic"]["counts"]
    counts = heuristic.counts()
    title = tables.TITLES["sigma-heuristic"]
    made = {
        "format": FORMAT,
        "table": "sigma-heuristic",
        "title": title,
        "sigmas": list(heuristic.SIGMAS),
        "taus": list(heuristic.TAUS),
        "counts": counts,
        "published": printed,
        "equal": counts == printed,
    }
    return _write(out, "table-sigma-heuristic", made, markdown.heuristic(counts, printed, title))


def subsets_of(data: Mapping[str, DataSet]) -> list[str]:
    """Data sets of which not all images are run, in words."""
    return [
        f"{d.name}: {len(d.samples):,} of {d.official:,} images"
        for d in data.values()
        if d.official and len(d.samples) != d.official
    ]


def _write(out: Path, stem: str, made: Mapping[str, Any], text: str) -> list[Path]:
    paths = [out / f"{stem}.md", out / f"{stem}.json"]
    with atomic(paths[0]) as file:
        file.write(text.encode())
    write_json(paths[1], made)
    return paths


def _keep_runs(request: Request, segmenter: Segmenter, finished: Finished) -> None:
    """A document for each run, as naclip evaluate writes it: naclip compare reads them."""
    folder = request.out / "runs"
    made_folder(folder)
    for key, result in finished.results.items():
        name = re.sub(r"[^a-z0-9]+", "-", f"{segmenter.model.name} {key}".lower()).strip("-")
        write_json(folder / f"{name}.json", document(result, segmenter, request.options))
