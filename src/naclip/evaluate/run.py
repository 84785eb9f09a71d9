"""Running jobs over images: read ahead, predict, count, keep; resumable at any image."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from naclip import __version__
from naclip.errors import DataError, ImageError
from naclip.evaluate.datasets import DataSet
from naclip.evaluate.jobs import Job, passes, predict, texts_of
from naclip.evaluate.metric import Sparse, Truth, confusion, sparse
from naclip.evaluate.record import Line, Record, fingerprint, made_folder
from naclip.files import atomic
from naclip.images import Picture
from naclip.pipeline import Segmenter
from naclip.results import palette
from naclip.vocabulary import Vocabulary, templates


class Progress(Protocol):
    """Is told what happens. The one that shows it: naclip.evaluate.progress."""

    def begin(self, jobs: Sequence[Job], images: int, known: int) -> None: ...
    def step(self, entries: Mapping[str, Sparse]) -> None: ...


class Elsewhere(Protocol):
    """As `lines`, on other machines; and what their models run on."""

    def __call__(
        self,
        segmenter: Segmenter,
        jobs: Sequence[Job],
        texts: Mapping[Vocabulary, Tensor],
        indices: Sequence[int],
        options: Options,
    ) -> Iterator[Line]: ...

    def ran_on(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Options:
    workers: int = 2  # threads that read images ahead
    skip_errors: bool = False
    resume: bool = False
    masks: Path | None = None  # where to save the labels that the first job predicts
    prompts: tuple[str, ...] = field(default_factory=templates)
    spread: Elsewhere | None = None


@dataclass(frozen=True)
class Evaluated:
    """All images of one job; what naclip.evaluate.report makes numbers of."""

    job: Job
    images: Mapping[str, Sparse]
    skipped: Mapping[str, str]  # image -> why
    seconds: float  # of the pass, which the job may have shared


@dataclass(frozen=True)
class Finished:
    results: Mapping[str, Evaluated]  # by the job's key
    records: Sequence[Record]  # to delete once the results are written
    seconds: float

    def forget_records(self) -> None:
        for record in self.records:
            record.delete()


def run(
    segmenter: Segmenter,
    jobs: Sequence[Job],
    folder: Path,
    options: Options,
    progress: Progress,
) -> Finished:
    """All jobs; records lie in `folder`, one for each pass, named after what it computes."""
    if options.masks is not None:
        made_folder(options.masks)  # fails now, not after the first image
    texts = texts_of(segmenter, jobs, options.prompts)
    results: dict[str, Evaluated] = {}
    records: list[Record] = []
    for together in passes(jobs):
        description = describe(segmenter, together, options)
        path = folder / f"naclip-{fingerprint(description)[:16]}.jsonl"
        record = Record(path, description, options.resume)
        records.append(record)
        try:
            _run_pass(segmenter, together, texts, record, options, progress)
        finally:
            record.close()
        results |= {job.key: _collected(job, record) for job in together}
    return Finished(results, records, _seconds(records))


def describe(segmenter: Segmenter, jobs: Sequence[Job], options: Options) -> dict[str, Any]:
    """Everything that determines the results of a pass."""
    model = segmenter.model
    return {
        "naclip": __version__,
        "weights": model.fingerprint,
        "activation": model.shape.activation,
        **(options.spread or segmenter).ran_on(),
        "prompts": options.prompts,
        "masks": str(options.masks.resolve()) if options.masks else None,
        "jobs": {
            job.key: {
                "data": job.data.name,
                "root": job.data.root,
                "images": names_hash(job.data),
                "classes": job.words.classes,
                "names": job.words.names,
                "settings": job.settings.flat(),
            }
            for job in jobs
        },
    }


def names_hash(data: DataSet) -> str:
    return hashlib.sha256("\n".join(sample.name for sample in data.samples).encode()).hexdigest()


def _run_pass(
    segmenter: Segmenter,
    jobs: Sequence[Job],
    texts: Mapping[Vocabulary, Tensor],
    record: Record,
    options: Options,
    progress: Progress,
) -> None:
    data = jobs[0].data
    progress.begin(jobs, len(data.samples), len(record.lines))
    for line in record.lines.values():
        progress.step(line.jobs)
    todo = [i for i, sample in enumerate(data.samples) if sample.name not in record.lines]
    for line in (options.spread or lines)(segmenter, jobs, texts, todo, options):
        record.add(line)
        progress.step(line.jobs)


def lines(
    segmenter: Segmenter,
    jobs: Sequence[Job],
    texts: Mapping[Vocabulary, Tensor],
    indices: Sequence[int],
    options: Options,
) -> Iterator[Line]:
    """What is to be known of these images, computed in this process."""
    for index, reading in _ahead(indices, lambda i: _read(jobs, i), options.workers):
        name = jobs[0].data.samples[index].name
        begin = time.perf_counter()
        try:
            picture, truths = reading.result()
        except (ImageError, DataError) as error:
            if not options.skip_errors:
                raise
            yield Line(name, error=str(error))
            continue
        entries = {}
        for job, labels in predict(segmenter, picture, jobs, texts):
            matrix = confusion(truths[job.data.name], labels, len(job.words.classes))
            entries[job.key] = sparse(matrix)
            if options.masks is not None and job is jobs[0]:
                _save_mask(options.masks, job, name, labels)
        yield Line(name, entries, seconds=time.perf_counter() - begin)


def _read(jobs: Sequence[Job], index: int) -> tuple[Picture, dict[str, Truth]]:
    """An image, and its truth under each of the data sets that the jobs are about."""
    picture = jobs[0].data.samples[index].picture()
    truths: dict[str, Truth] = {}
    for data in {job.data.name: job.data for job in jobs}.values():
        truth = data.samples[index].truth()
        if truth.shape != picture.size:
            raise DataError(
                f"{picture.name} is {picture.size[1]}x{picture.size[0]}, but its mask in "
                f"{data.name} is {truth.shape[1]}x{truth.shape[0]}: expected the same size"
            )
        truths[data.name] = truth
    return picture, truths


def _ahead(
    indices: Sequence[int], read: Callable[[int], Any], workers: int
) -> Iterator[tuple[int, Future[Any]]]:
    """Results in order, with a bounded number of images read in advance by threads."""
    waiting: deque[tuple[int, Future[Any]]] = deque()
    with ThreadPoolExecutor(max(1, workers), thread_name_prefix="naclip-read") as pool:
        try:
            for index in indices:
                waiting.append((index, pool.submit(read, index)))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _save_mask(folder: Path, job: Job, name: str, labels: NDArray[Any]) -> None:
    """Before the image's line is kept: a resumed run has the masks of what it does not repeat."""
    from PIL import Image

    path = folder / f"{name}.png"
    made_folder(path.parent)
    small = len(job.words.classes) < 256
    image = Image.fromarray(labels.astype(np.uint8 if small else np.uint16))
    if small:
        image.putpalette(palette(256, job.words.has_background).tobytes())
    with atomic(path) as file:
        image.save(file, format="PNG")


def _seconds(records: Sequence[Record]) -> float:
    return sum(line.seconds for record in records for line in record.lines.values())


def _collected(job: Job, record: Record) -> Evaluated:
    """In the order of the data set, whatever the order in which lines were kept."""
    lines = [record.lines[sample.name] for sample in job.data.samples]
    return Evaluated(
        job,
        {line.image: line.jobs[job.key] for line in lines if not line.error},
        {line.image: line.error for line in lines if line.error},
        _seconds([record]),
    )
