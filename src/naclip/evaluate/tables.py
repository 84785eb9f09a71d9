"""The paper's tables: rows that we run, rows that are only printed, and the runs they share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from naclip.errors import SettingsError, no_such
from naclip.evaluate import published
from naclip.evaluate.datasets import DataSet
from naclip.evaluate.jobs import Job
from naclip.evaluate.metric import scores, total
from naclip.evaluate.report import data_of, interval_of, number
from naclip.evaluate.run import Evaluated
from naclip.settings import METHODS, Method

TITLES = {
    "main": "Table 1: comparison on eight benchmarks",
    "backbones": "Table 2: CLIP-ViT backbones",
    "attention": "Table 3: spatial consistency and similarity measure (block as trained)",
    "architecture": "Table 4: architectural reduction (CLIP's own attention)",
    "sigma-heuristic": "Appendix: patches whose attention logit grows by more than tau",
}
BACKBONES = ("ViT-B/16", "ViT-B/32", "ViT-L/14")
BACKBONE_BENCHMARKS = ("voc21", "context59")


@dataclass(frozen=True)
class Row:
    """One system; `method` is None where only the paper's numbers exist."""

    system: str
    post: bool  # refined
    published: Mapping[str, float | None] = field(default_factory=dict)  # percent
    published_average: float | None = None
    method: Method | None = None
    venue: str = ""
    fair: bool = True

    def key(self, data: str) -> str:
        return f"{data}, {self.system}, {'refined' if self.post else 'raw'}"


def rows_of(table: str, model: str | None, refine_all: bool, only: Sequence[str]) -> list[Row]:
    """The rows of a table; `model` is the paper's name of the model that runs them."""
    made = {"main": _main, "attention": _ablation, "architecture": _ablation}
    if table == "backbones":
        rows = _backbones(model)
    elif table in made:
        rows = made[table](table)
    else:
        raise SettingsError(no_such("table", table, TITLES, "docs/evaluation.md"))
    if refine_all:
        rows += [
            Row(row.system, True, method=row.method, venue=row.venue, fair=row.fair)
            for row in rows
            if row.method and not any(r.post and r.system == row.system for r in rows)
        ]
    runnable = {row.method.name: row for row in rows if row.method}
    for name in only:
        if name not in runnable:
            raise SettingsError(no_such("method in this table", name, runnable, "naclip methods"))
    return [row for row in rows if not only or (row.method and row.method.name in only)]


def _main(table: str) -> list[Row]:
    return [
        Row(
            row["system"],
            row["post"],
            published.row_scores(row),
            number(row["average"]),
            METHODS[row["method"]] if "method" in row else None,
            row["venue"],
            row["fair"],
        )
        for row in published.tables()[table]
    ]


def _ablation(table: str) -> list[Row]:
    return [
        Row(
            row["system"],
            False,
            published.row_scores(row),
            number(row["average"]),
            published.ablated(row),
        )
        for row in published.tables()[table]
    ]


def _backbones(model: str | None) -> list[Row]:
    rows = []
    for row in published.tables()["backbones"]:
        printed = row.get(model or "", [math.nan] * len(BACKBONE_BENCHMARKS))
        values = {n: number(v) for n, v in zip(BACKBONE_BENCHMARKS, printed, strict=True)}
        average = row["average"].get(model)
        rows.append(Row(row["system"], row["post"], values, average, METHODS[row["method"]]))
    return rows


def jobs_of(rows: Sequence[Row], data: Mapping[str, DataSet], blocks: int) -> list[Job]:
    """Everything that a table runs, on a model of so many blocks."""
    return [
        Job(row.key(name), d, d.words, d.settings.updated(method=method, refine=row.post))
        for name, d in data.items()
        for row in rows
        if (method := _fitted(row, d, blocks))
    ]


def _fitted(row: Row, data: DataSet, blocks: int) -> Method | None:
    """With the data set's own sigma (the paper's 5 for its eight), and no deeper than the model."""
    if row.method is None:
        return None
    depth = min(row.method.depth, blocks)
    return replace(row.method, sigma=data.settings.method.sigma, depth=depth)


def table_rows(
    rows: Sequence[Row], benchmarks: Sequence[str], results: Mapping[str, Evaluated]
) -> list[dict[str, Any]]:
    """Rows with our numbers beside the paper's, all in percent."""
    filled = []
    for row in rows:
        ours = {}
        for name in dict.fromkeys((*benchmarks, *(r.job.data.name for r in results.values()))):
            if row.method and row.key(name) in results:
                ours[name] = _cell(results[row.key(name)])
        values = [ours[name]["miou"] for name in benchmarks if name in ours]
        complete = len(values) == len(benchmarks) and None not in values
        filled.append(
            {
                "system": row.system,
                "venue": row.venue,
                "fair": row.fair,
                "post": row.post,
                "published": dict(row.published),
                "published_average": row.published_average,
                "ours": ours,
                "ours_average": sum(values) / len(values) if complete else None,
            }
        )
    return filled


def _cell(result: Evaluated) -> dict[str, Any]:
    matrix = total(result.images.values(), len(result.job.words.classes))
    miou = number(100 * scores(matrix).miou)
    bounds = interval_of(result)["miou_interval"]
    return {
        "miou": miou,
        "interval": [100 * bound for bound in bounds] if bounds else None,
        "settings": result.job.settings.flat(),
        "data": data_of(result),
        "skipped": dict(result.skipped),
    }
