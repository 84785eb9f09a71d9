"""Figures 3, 6 and 7: images, their truth, and the masks of CLIP, SCLIP and NACLIP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naclip.evaluate.compare import coloured
from naclip.evaluate.datasets import DataSet, Sample
from naclip.evaluate.figures import new_figure, save
from naclip.evaluate.figures.attention import METHODS_SHOWN
from naclip.evaluate.jobs import Job, predict, texts_of
from naclip.evaluate.metric import VOID, confusion, scores
from naclip.evaluate.report import model_of, number, versions
from naclip.evaluate.run import Options
from naclip.pipeline import Segmenter
from naclip.results import palette
from naclip.settings import METHODS

SIDE = 2.6
SAMPLES = 4
LEGEND_COLUMNS = 6


def qualitative(
    segmenter: Segmenter, data: DataSet, names: Sequence[str], options: Options, out: Path
) -> list[Path]:
    """Rows of image, truth and masks: of the named images, or of the first few."""
    samples = [data.sample(name) for name in names] or list(data.samples[:SAMPLES])
    jobs = [
        Job(name, data, data.words, data.settings.updated(method=_method(name, data)))
        for name in METHODS_SHOWN
    ]
    texts = texts_of(segmenter, jobs, options.prompts)
    rows = []
    for sample in samples:
        picture = sample.picture()
        masks = {job.key: labels for job, labels in predict(segmenter, picture, jobs, texts)}
        rows.append((sample, picture.rgb, sample.truth(), masks))
    colours = palette(len(data.words.classes), data.words.has_background)
    ratios = [image.shape[0] / image.shape[1] for _, image, _, _ in rows]
    figure = new_figure(SIDE * 5, SIDE * sum(ratios) + 1)
    axes = figure.subplots(len(rows), 5, squeeze=False, height_ratios=ratios)
    for line, (_, image, truth, masks) in zip(axes, rows, strict=True):
        panels = [image, coloured(truth, colours)]
        panels += [coloured(masks[name], colours) for name in METHODS_SHOWN]
        for axis, panel in zip(line, panels, strict=True):
            axis.imshow(panel)
            axis.set_xticks([])
            axis.set_yticks([])
    titles = ("image", "truth", *METHODS_SHOWN.values())
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title)
    _add_legend(figure, data, colours, rows)
    refined = "with" if data.settings.refinement.refine else "without"
    caption = (
        f"Segmentation maps on {data.name}, {refined} refinement; void is white. Figure 3 of the "
        "paper."
    )
    numbers = {
        "data": {"name": data.name, "root": data.root},
        "images": [_numbers(row[0], row[2], row[3], len(data.words.classes)) for row in rows],
        "model": model_of(segmenter),
        "versions": versions(),
    }
    return save(figure, out, "qualitative", caption, numbers)


def _method(name: str, data: DataSet) -> Any:
    return replace(METHODS[name], sigma=data.settings.method.sigma)


def _add_legend(figure: Any, data: DataSet, colours: NDArray[np.uint8], rows: list[Any]) -> None:
    """Classes that are true somewhere, or that any of the methods sees on a tenth of an image."""
    from matplotlib.patches import Patch

    shown: set[int] = set()
    for _, _, truth, masks in rows:
        shown |= set(np.unique(truth[truth != VOID]).tolist())
        for labels in masks.values():
            counts = np.bincount(labels.ravel())
            shown |= set(np.flatnonzero(counts > labels.size / 10).tolist())
    handles = [Patch(color=colours[i] / 255, label=data.words.classes[i]) for i in sorted(shown)]
    figure.legend(handles=handles, loc="outside lower center", ncols=LEGEND_COLUMNS, fontsize=8)


def _numbers(
    sample: Sample, truth: NDArray[Any], masks: Mapping[str, NDArray[Any]], classes: int
) -> dict[str, Any]:
    return {
        "image": sample.name,
        "miou": {
            name: number(scores(confusion(truth, labels, classes)).miou)
            for name, labels in masks.items()
        },
    }
