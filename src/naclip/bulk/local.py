"""One machine: threads that read, threads that segment, threads that write.

Only so many chunks are between the first byte read and the last one written, so that memory does
not grow with the number of images.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from naclip.bulk.chunks import Chunk, Outcome
from naclip.bulk.worker import Worker
from naclip.pipeline import Segmenter

MOST_AT_ONCE = 4
Given = TypeVar("Given")
Made = TypeVar("Made")


def outcomes(
    worker: Worker, chunks: Iterable[Chunk], readers: int, writers: int
) -> Iterator[Outcome]:
    """Every chunk, when it is written."""
    models = at_once(worker.many.segmenter)
    with threads_divided(models):
        read = staged(worker.read, chunks, readers)
        segmented = staged(worker.segment, read, models)
        yield from staged(worker.write, segmented, writers)


def at_once(segmenter: Segmenter) -> int:
    """Chunks that are segmented at the same time.

    torch on a CPU: the fewer cores work at one image, the fewer wait for each other in every block;
    but each image takes memory. OpenVINO divides an image among the cores by itself; a GPU takes
    one after another.
    """
    alone = segmenter.device.type != "cpu" or segmenter.engine.name != "torch"
    return 1 if alone else min(torch.get_num_threads(), MOST_AT_ONCE)


@contextmanager
def threads_divided(workers: int) -> Iterator[None]:
    """torch's threads divided among so many workers, and given back at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before // workers))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def staged(work: Callable[[Given], Made], items: Iterable[Given], threads: int) -> Iterator[Made]:
    """work(item) of each, in their order: one waits to be fetched while each thread is at one.

    Where the items end in an error, what is underway is still finished: it comes first.
    """
    underway: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix=f"naclip-{work.__name__}") as pool:
        try:
            for item in _with_error(items):
                if isinstance(item, _Failed):
                    yield from (one.result() for one in underway)
                    raise item.error
                underway.append(pool.submit(work, item))
                if len(underway) > threads:
                    yield underway.popleft().result()
            while underway:
                yield underway.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class _Failed:
    error: Exception


def _with_error(items: Iterable[Given]) -> Iterator[Given | _Failed]:
    try:
        yield from items
    except Exception as error:
        yield _Failed(error)
