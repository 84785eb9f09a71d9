"""One machine: threads that read, the model in the main thread, threads that write.

Only so many chunks are between the first byte read and the last one written, so that memory does
not grow with the number of images.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from naclip.bulk.chunks import Chunk, Outcome
from naclip.bulk.worker import Read, Worker


def outcomes(
    worker: Worker, chunks: Iterable[Chunk], readers: int, writers: int
) -> Iterator[Outcome]:
    """Every chunk, when it is written."""
    writing: deque[Future[Outcome]] = deque()
    with ThreadPoolExecutor(writers, thread_name_prefix="naclip-write") as pool:
        try:
            for read in _ahead(worker, chunks, readers):
                writing.append(pool.submit(worker.write, worker.segment(read)))
                while writing and (len(writing) > writers or writing[0].done()):
                    yield writing.popleft().result()
            while writing:
                yield writing.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _ahead(worker: Worker, chunks: Iterable[Chunk], readers: int) -> Iterator[Read]:
    """Chunks as read, in their order: one waits for the model while each reader is at another."""
    reading: deque[Future[Read]] = deque()
    with ThreadPoolExecutor(readers, thread_name_prefix="naclip-read") as pool:
        try:
            for chunk in chunks:
                reading.append(pool.submit(worker.read, chunk))
                if len(reading) > readers:
                    yield reading.popleft().result()
            while reading:
                yield reading.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
