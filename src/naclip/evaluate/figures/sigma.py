"""The appendix's figure: mIoU over sigma, with and without refinement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from naclip.evaluate.datasets import DataSet
from naclip.evaluate.figures import new_figure, save
from naclip.evaluate.heuristic import SIGMAS
from naclip.evaluate.jobs import Job
from naclip.evaluate.markdown import short
from naclip.evaluate.metric import scores, total
from naclip.evaluate.report import model_of, number, times, versions
from naclip.evaluate.reproduce import subsets_of
from naclip.evaluate.run import Options, Progress, run
from naclip.pipeline import Segmenter
from naclip.settings import METHODS

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
    jobs = [
        Job(
            f"{name} {value} {refine}",
            d,
            d.words,
            d.settings.updated(method=replace(METHODS["naclip"], sigma=value), refine=refine),
        )
        for name, d in data.items()
        for refine in STYLES
        for value in SIGMAS
    ]
    finished = run(segmenter, jobs, out / "records", options, progress)
    mious = {
        key: 100 * scores(total(r.images.values(), len(r.job.words.classes))).miou
        for key, r in finished.results.items()
    }
    axis = figure.subplots()
    for index, name in enumerate(data):
        for refine, (style, label) in STYLES.items():
            points = [mious[f"{name} {value} {refine}"] for value in SIGMAS]
            title = f"{short(name)}, {label}"
            axis.plot(SIGMAS, points, style, color=f"C{index}", marker="o", label=title)
    axis.set_xlabel("sigma, in patches")
    axis.set_ylabel("mIoU, percent")
    axis.set_xticks(list(SIGMAS))
    axis.grid(alpha=0.3)
    subsets = subsets_of(data)
    axis.set_title("NACLIP over sigma" + (" (subset of the images)" if subsets else ""))
    figure.legend(loc="outside right upper", fontsize=8)
    curves = [
        {
            "data": name,
            "refined": refine,
            "sigma": list(SIGMAS),
            "miou": [number(mious[f"{name} {value} {refine}"]) for value in SIGMAS],
        }
        for name in data
        for refine in STYLES
    ]
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
