"""`naclip reproduce figure`: a figure by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from naclip import images
from naclip.clip.sources import default_settings
from naclip.errors import SettingsError, no_such
from naclip.evaluate.datasets import BENCHMARKS, DataSet
from naclip.evaluate.drawn import open_drawn
from naclip.evaluate.figures import FIGURES, attention, new_figure, qualitative
from naclip.evaluate.figures.sigma import sigma
from naclip.evaluate.given import open_given
from naclip.evaluate.run import Options, Progress
from naclip.pipeline import Segmenter


@dataclass(frozen=True)
class Request:
    image: Path | None
    patches: Sequence[str]
    samples: Sequence[str]  # names of images of a data set
    given: Sequence[str]  # data sets: naclip.evaluate.given
    limit: int | None
    out: Path
    options: Options
    model: str


def check(name: str) -> None:
    """What can be wrong before a model is loaded."""
    if name not in FIGURES:
        raise SettingsError(no_such("figure", name, FIGURES, "docs/evaluation.md"))
    new_figure(1, 1)


def figure(name: str, request: Request, segmenter: Segmenter, progress: Progress) -> list[Path]:
    if name in ("attention", "schematic"):
        patches = [attention.parse_patch(text) for text in request.patches]
        drawn = open_drawn(segmenter.model.defaults).samples[0]
        picture = images.load(request.image) if request.image else drawn.picture()
        made = attention.attention if name == "attention" else attention.schematic
        return made(segmenter, picture, patches, request.out)
    data = _data(request)
    if name == "sigma":
        return sigma(segmenter, data, request.options, request.out, progress)
    if len(data) > 1:
        raise SettingsError(
            f"--data gives {' and '.join(data)}, but qualitative draws one data set: use --data "
            f"{next(iter(data))}=DIR, or another of these names"
        )
    (only,) = data.values()
    return qualitative.qualitative(segmenter, only, request.samples, request.options, request.out)


def _data(request: Request) -> dict[str, DataSet]:
    defaults = default_settings(request.model)
    return open_given(request.given, tuple(BENCHMARKS), request.limit, defaults)
