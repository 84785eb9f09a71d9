"""What every route shares: the model's thread, the memory, and the slots of accepted requests."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from fastapi import Request

from naclip import vocabulary
from naclip.clip.model import ClipModel
from naclip.clip.names import text_features
from naclip.images import Picture
from naclip.pipeline import Encoded, Segmenter
from naclip.serve import asked
from naclip.serve.limits import Limits
from naclip.serve.memory import Memory
from naclip.serve.metrics import Metrics
from naclip.serve.problems import Problem
from naclip.serve.worker import Dropped, Reading, Work, Worker

T = TypeVar("T")
DECODERS = 2  # threads that decode images and write answers


class Service:
    def __init__(self, segmenter: Segmenter, limits: Limits) -> None:
        self.segmenter = segmenter
        self.limits = limits
        self.memory = Memory(limits.cache_bytes)
        self.metrics = Metrics(self.memory)
        self.worker = Worker(segmenter, self.memory, self.metrics, limits.batch)
        self.pool = ThreadPoolExecutor(DECODERS, thread_name_prefix="naclip-images")
        self.accepted = 0
        self.draining = False

    def warm_words(self) -> None:
        """The benchmarks' names, when idle."""
        names = {n: None for v in vocabulary.BENCHMARKS for n in vocabulary.load(v).prompts}
        self.warm(names, vocabulary.templates())

    def warm(self, names: Iterable[str], templates: tuple[str, ...]) -> None:
        """When idle: a name never asked before costs 80 prompts."""
        model = self.segmenter.model
        self.worker.when_idle(partial(_encode, model, name, templates) for name in names)

    def close(self) -> None:
        self.worker.stop()
        self.pool.shutdown()

    def check_open(self) -> None:
        if self.draining:
            raise Problem(503, "the service is stopping: ask again", headers={"Retry-After": "5"})

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """From the first byte of a request's body to its answer; bounds memory too."""
        self.check_open()
        if self.accepted >= self.limits.queue:
            self.metrics.refused.inc()
            raise Problem(
                429,
                f"{self.accepted} requests are waiting, which is the limit: ask again",
                headers={"Retry-After": "1"},
            )
        self.accepted += 1
        self.metrics.accepted.set(self.accepted)
        try:
            yield
        finally:
            self.accepted -= 1
            self.metrics.accepted.set(self.accepted)

    async def in_pool(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, function, *arguments)

    async def picture(self, files: list[bytes], image_id: str | None) -> tuple[Picture, str]:
        """The request's image, or the remembered one of this hash."""
        if len(files) + (image_id is not None) != 1:
            detail = "give one image: a file or base64 in image, or image_id"
            raise Problem(422, detail, field="image")
        if image_id is not None:
            known = self.memory.get(("picture", image_id))
            if known is None:
                raise Problem(
                    404,
                    "no image of this id is remembered: send the image itself",
                    kind="image-unknown",
                    field="image_id",
                )
            return known, image_id
        found_id = hashlib.sha256(files[0]).hexdigest()
        known = self.memory.get(("picture", found_id))
        if known is not None:
            return known, found_id
        decoding = self.in_pool(asked.picture, files[0], self.limits)
        try:
            picture = await asyncio.wait_for(decoding, self.limits.request_seconds)
        except (TimeoutError, asyncio.TimeoutError):  # two classes until Python 3.11
            raise self._too_late() from None
        self.memory.put(("picture", found_id), picture)
        return picture, found_id

    def work(
        self,
        picture: tuple[Picture, str],
        reading: Reading | None,
        finish: Callable[[Encoded | None, Callable[[], None]], Any],
        urgent: bool = True,
    ) -> Work:
        return Work(*picture, reading, finish, self.limits.request_seconds, urgent)

    async def result(self, request: Request, work: Work) -> Any:
        """The work's answer; dropped when the client leaves or the time is up."""
        self.worker.submit(work)
        done = asyncio.wrap_future(work.future)
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait(
                {done, gone},
                timeout=self.limits.request_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done.done():
                work.dropped = True
                if gone.done():
                    self.metrics.left.inc()
                    raise Problem(400, "the client left")
                raise self._too_late()
            return done.result()
        except Dropped:
            raise self._too_late() from None
        finally:
            gone.cancel()
            if not done.done():
                done.add_done_callback(_forget)

    def _too_late(self) -> Problem:
        return Problem(
            503,
            f"not done within {self.limits.request_seconds:g} s: use a smaller image, fewer "
            "words, or ask when the service is less busy",
            kind="time-limit",
            headers={"Retry-After": "10"},
        )


@torch.inference_mode()
def _encode(model: ClipModel, name: str, templates: tuple[str, ...]) -> None:
    text_features(model, [name], templates)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _forget(future: asyncio.Future[Any]) -> None:
    """The result of dropped work: fetched, so that asyncio does not call it lost."""
    if not future.cancelled():
        future.exception()
