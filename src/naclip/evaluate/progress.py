"""A bar with the running mIoU and the time left, on standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from naclip.evaluate.jobs import Job
from naclip.evaluate.metric import Counts, Sparse, scores, total


class Bar:
    """A bar for each pass; the mIoU shown is of its first job."""

    def __init__(self) -> None:
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("mIoU {task.fields[miou]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._job: Job | None = None
        self._kept = 0
        self._sum: Counts = np.zeros((0, 0), np.int64)

    def __enter__(self) -> Bar:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
        if kind is not None and self._kept:
            Console(stderr=True).print("all images so far are kept: --resume goes on from here")

    def begin(self, jobs: Sequence[Job], images: int, known: int) -> None:
        self._job = jobs[0]
        classes = len(jobs[0].words.classes)
        self._sum = np.zeros((classes, classes), np.int64)
        names = ", ".join(dict.fromkeys(job.data.name for job in jobs))
        more = f" ({len(jobs)} at once)" if len(jobs) > 1 else ""
        if known:
            self._bars.console.print(f"{names}: {known} of {images} images are known from before")
        self._task = self._bars.add_task(names + more, total=images, miou="-")

    def step(self, entries: Mapping[str, Sparse]) -> None:
        assert self._job is not None
        self._kept += 1
        if self._job.key in entries:
            self._sum += total([entries[self._job.key]], len(self._sum))
        miou = scores(self._sum).miou
        shown = "-" if np.isnan(miou) else f"{miou:.2%}"
        self._bars.update(self._task, advance=1, miou=shown)
