"""What is to be computed, arranged so that work is shared.

a pass      jobs on the same images with the same windows: frozen blocks run once an image
a scoring   the same method and words: patches x words and the stitching once
a decoding  refined or raw: once for all thresholds
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from naclip.device import memory_errors
from naclip.evaluate.datasets import DataSet
from naclip.images import Picture
from naclip.pipeline import Segmenter
from naclip.settings import Settings
from naclip.vocabulary import Vocabulary

Item = TypeVar("Item")


@dataclass(frozen=True)
class Job:
    """One number of a table: a data set under some words and settings."""

    key: str
    data: DataSet
    words: Vocabulary
    settings: Settings


def grouped(items: Sequence[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Items with the same key together, in order of first appearance."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def passes(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs that share a pass over the images."""
    return grouped(jobs, lambda job: (job.data.images, job.settings.windowing))


def texts_of(
    segmenter: Segmenter, jobs: Sequence[Job], templates: Sequence[str]
) -> dict[Vocabulary, Tensor]:
    return {words: segmenter.words(words, templates) for words in {job.words for job in jobs}}


@torch.inference_mode()
def predict(
    segmenter: Segmenter, picture: Picture, jobs: Sequence[Job], texts: Mapping[Vocabulary, Tensor]
) -> Iterator[tuple[Job, NDArray[Any]]]:
    """(job, labels) of each job of one pass, for one image."""
    with memory_errors(picture.name):
        methods = list(dict.fromkeys(job.settings.method for job in jobs))
        windowing = jobs[0].settings.windowing
        encoded = segmenter.encode(picture, windowing, methods)
        for scoring in grouped(jobs, _scoring):
            first = scoring[0]
            patches = encoded[methods.index(first.settings.method)]
            maps = segmenter.score(patches, texts[first.words], first.words, first.settings)
            for decoding in grouped(scoring, _refinement):
                refinement = decoding[0].settings.refinement
                decoded = replace(maps, refinement=refinement).decode(lean=True)
                for job in decoding:
                    labels = decoded.thresholded(job.settings.decoding.threshold)
                    yield job, labels.cpu().numpy()


def _scoring(job: Job) -> Hashable:
    return job.settings.method, job.words, job.settings.decoding.logit_scale


def _refinement(job: Job) -> Hashable:
    refinement = job.settings.refinement
    return refinement if refinement.refine else None
