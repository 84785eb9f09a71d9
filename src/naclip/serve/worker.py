"""One thread with the model behind a queue; what waits for the same reading goes through together.

Interactive requests go before images of batch jobs. Work whose client has left or whose time is up
is dropped between stages: a pass through the model itself cannot be interrupted.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from naclip.device import memory_errors
from naclip.images import Picture
from naclip.pipeline import Encoded, Segmenter
from naclip.serve.logs import log
from naclip.serve.memory import Memory
from naclip.serve.metrics import Metrics
from naclip.settings import Method, Windowing

CHORES = 4_096  # kept; what is dropped then is done when it is asked for


class Dropped(Exception):  # noqa: N818  (not an error of anyone)
    """The client left, or the time was up, before the work was done."""


@dataclass(frozen=True)
class Reading:
    """What features of an image depend on, and the size of its windows: one stack has one size."""

    windowing: Windowing
    method: Method
    window: tuple[int, int]


@dataclass(eq=False)
class Work:
    picture: Picture
    image_id: str
    reading: Reading | None  # none: `finish` does it all
    finish: Callable[[Encoded | None, Callable[[], None]], Any]  # (features, check) -> answer
    seconds: float  # from its being asked for; of what is not urgent, from its being begun
    urgent: bool = True
    future: Future[Any] = field(default_factory=Future)
    dropped: bool = False
    cached: bool = False
    deadline: float = math.inf  # time.monotonic()

    def __post_init__(self) -> None:
        if self.urgent:
            self.deadline = time.monotonic() + self.seconds

    def begin(self) -> None:
        """What waits behind all others is not late for having waited."""
        if not self.urgent:
            self.deadline = time.monotonic() + self.seconds

    def check(self) -> None:
        if self.dropped or time.monotonic() > self.deadline:
            raise Dropped

    @property
    def key(self) -> tuple[Hashable, ...]:
        return ("features", self.image_id, self.reading)


class Worker:
    def __init__(self, segmenter: Segmenter, memory: Memory, metrics: Metrics, batch: int) -> None:
        self.segmenter = segmenter
        self.memory = memory
        self.metrics = metrics
        self.batch = batch
        self._urgent: deque[Work] = deque()
        self._patient: deque[Work] = deque()
        self._changed = threading.Condition()
        self._chores: deque[Callable[[], None]] = deque(maxlen=CHORES)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="naclip-model", daemon=True)
        self._thread.start()

    def submit(self, work: Work) -> None:
        with self._changed:
            (self._urgent if work.urgent else self._patient).append(work)
            self._changed.notify()

    def when_idle(self, chores: Iterable[Callable[[], None]]) -> None:
        """Done one by one, each only when no request is waiting; short ones: they are not cut."""
        with self._changed:
            self._chores.extend(chores)
            self._changed.notify()

    def stop(self) -> None:
        """Finish what is queued, chores aside, then end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (group := self._next()) is not None:
            # From here on a future cannot be cancelled under the thread's hands.
            self._do([w for w in group if w.future.set_running_or_notify_cancel()])
            if not group:
                self._chore(self._chores.popleft())

    def _chore(self, chore: Callable[[], None]) -> None:
        try:
            chore()
        except Exception:  # nobody waits for it, and the thread serves all
            log.exception("chore")

    def _next(self) -> list[Work] | None:
        """The oldest work and what waits for the same reading; empty: a chore; None: the end."""
        with self._changed:
            while not (self._urgent or self._patient or self._stopping or self._chores):
                self._changed.wait()
            queue = self._urgent or self._patient
            if not queue:
                return None if self._stopping else []
            group = [queue.popleft()]
            reading = group[0].reading
            for work in list(queue) if reading is not None else ():
                if len(group) < self.batch and work.reading == reading:
                    queue.remove(work)
                    group.append(work)
            return group

    def _do(self, group: list[Work]) -> None:
        if not group:
            return
        for work in group:
            work.begin()
        try:
            features = self._features(group)
        except Exception as error:
            if len(group) > 1:  # whose fault it is shows when they go one by one
                for work in group:
                    self._do([work])
            else:
                group[0].future.set_exception(error)
            return
        for work in group:
            try:
                work.check()
                with memory_errors("the request"):
                    answer = work.finish(features.get(work.key), work.check)
            except Exception as error:
                work.future.set_exception(error)
            else:
                work.future.set_result(answer)

    def _features(self, group: list[Work]) -> dict[tuple[Hashable, ...], Encoded]:
        """Of each image of the group: remembered ones, and the others in one stack."""
        found: dict[tuple[Hashable, ...], Encoded] = {}
        missing: dict[tuple[Hashable, ...], Picture] = {}
        reading = group[0].reading
        if reading is None:
            return found
        for work in group:
            if work.dropped or work.key in missing:
                continue
            known = self.memory.get(work.key)
            work.cached = known is not None
            if known is not None:
                found[work.key] = known
            else:
                missing[work.key] = work.picture
        if missing:
            self.metrics.batch.observe(len(missing))
            with memory_errors("the image"):
                encoded = self.segmenter.encode_many(
                    list(missing.values()), reading.windowing, [reading.method]
                )
            for key, (view,) in zip(missing, encoded, strict=True):
                # A view of the stack would keep all of it in memory.
                found[key] = replace(view, patches=view.patches.clone())
                self.memory.put(key, found[key])
        return found
