"""The appendix's figure: mIoU over sigma, with and without refinement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from naclip.evaluate.datasets import DataSet
from naclip.evaluate.figures import new_figure, save
from naclip.evaluate.heuristic import SIGMAS
from naclip.evaluate.jobs import Job
from naclip.evaluate.markdown import short
from naclip.evaluate.metric import scores, total
from naclip.evaluate.report import model_of, number, times, versions
from naclip.evaluate.reproduce import subsets_of
from naclip.evaluate.run import Evaluated, Options, Progress, run
from naclip.pipeline import Segmenter
from naclip.settings import METHODS, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES = {True: ("-", "refined"), False: ("--", "raw")}


def sigma(
    segmenter: Segmenter,
    data: Mapping[str, DataSet],
    options: Options,
    out: Path,
    progress: Progress,
) -> list[Path]:
    """20 curves' points for each data set from one pass over its images."""
    figure = new_figure(7, 4.5)  # before the work: a missing extra is told at once
    finished = run(segmenter, jobs_of(data), out / "records", options, progress)
    curves = _curves(data, finished.results)
    subsets = subsets_of(data)
    _draw(figure, curves, is_subset=bool(subsets))
    caption = "mIoU for sigma from 1 to 10, with and without refinement (appendix of the paper)."
    caption += "".join(f" Subset: {text}." for text in subsets)
    numbers = {
        "subsets": subsets,
        "curves": curves,
        "model": model_of(segmenter),
        "versions": versions(),
        "times": times(finished.seconds),
    }
    paths = save(figure, out, "sigma", caption, numbers)
    finished.forget_records()
    return paths


def jobs_of(data: Mapping[str, DataSet]) -> list[Job]:
    """All points of all curves."""
    return [
        Job(_key(name, refine, value), d, d.words, _settings(d, refine, value))
        for name, d in data.items()
        for refine in STYLES
        for value in SIGMAS
    ]


def _key(name: str, refine: bool, value: float) -> str:
    return f"{name} {value} {refine}"


def _settings(data: DataSet, refine: bool, value: float) -> Settings:
    return data.settings.updated(method=replace(METHODS["naclip"], sigma=value), refine=refine)


def _curves(data: Mapping[str, DataSet], results: Mapping[str, Evaluated]) -> list[dict[str, Any]]:
    return [
        {
            "data": name,
            "refined": refine,
            "sigma": list(SIGMAS),
            "miou": [_percent(results[_key(name, refine, value)]) for value in SIGMAS],
        }
        for name in data
        for refine in STYLES
    ]


def _percent(result: Evaluated) -> float | None:
    matrix = total(result.images.values(), len(result.job.words.classes))
    return number(100 * scores(matrix).miou)


def _draw(figure: Figure, curves: Sequence[Mapping[str, Any]], *, is_subset: bool) -> None:
    """A colour for each data set, a style for refined and raw."""
    axis = figure.subplots()
    colours = {name: f"C{i}" for i, name in enumerate(dict.fromkeys(c["data"] for c in curves))}
    for curve in curves:
        style, label = STYLES[curve["refined"]]
        title = f"{short(curve['data'])}, {label}"
        colour = colours[curve["data"]]
        axis.plot(curve["sigma"], curve["miou"], style, color=colour, marker="o", label=title)
    axis.set_xlabel("sigma, in patches")
    axis.set_ylabel("mIoU, percent")
    axis.set_xticks(list(SIGMAS))
    axis.grid(alpha=0.3)
    axis.set_title("NACLIP over sigma" + (" (subset of the images)" if is_subset else ""))
    figure.legend(loc="outside right upper", fontsize=8)
