"""Parts of the service that need no process: run lengths, memory, the order of work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from naclip import images
from naclip.images import Picture
from naclip.pipeline import Segmenter
from naclip.serve.answers import run_lengths
from naclip.serve.limits import Limits
from naclip.serve.memory import Memory
from naclip.serve.service import Service
from naclip.serve.worker import Dropped, Work


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        # By hand, from COCO's definition: down the columns, the first run is of zeros.
        ([[0, 0], [0, 0]], [4]),
        ([[1, 1], [1, 1]], [0, 4]),
        ([[1, 0], [0, 0]], [0, 1, 3]),
        ([[0, 1], [1, 1]], [1, 3]),
        ([[0, 0, 1], [1, 0, 0]], [1, 1, 2, 1, 1]),
    ],
)
def test_run_lengths_by_hand(rows: list[list[int]], counts: list[int]) -> None:
    assert run_lengths(np.array(rows, bool)) == counts


def picture(size: int) -> Picture:
    return Picture(np.zeros((size, size, 3), np.uint8), "x")


def test_memory_forgets_the_least_recently_used_and_stays_in_its_bytes() -> None:
    memory = Memory(3 * 300)
    for name in "abc":
        memory.put(("picture", name), picture(10))
    assert memory.get(("picture", "a")) is not None
    memory.put(("picture", "d"), picture(10))
    assert memory.get(("picture", "b")) is None
    assert memory.get(("picture", "a")) is not None
    memory.put(("picture", "a"), picture(10))  # again: not counted twice
    assert memory.bytes == 900
    memory.put(("picture", "huge"), picture(100))
    assert memory.bytes <= 900
    assert memory.get(("picture", "huge")) is None


@pytest.fixture
def service(tiny: Segmenter) -> Service:
    return Service(tiny, Limits())


def test_urgent_work_goes_first_and_chores_last(service: Service) -> None:
    done: list[str] = []
    gate = threading.Event()

    def work(name: str, urgent: bool) -> Work:
        def finish(*_: object) -> None:
            done.append(name)

        return service.work((picture(64), name), None, finish, urgent)

    blocker = service.work((picture(64), "b"), None, lambda *_: gate.wait(10))
    service.worker.submit(blocker)
    service.worker.when_idle([lambda: done.append("chore")])
    jobs = [work("job", False), work("first", True), work("second", True)]
    for one in jobs:
        service.worker.submit(one)
    gate.set()
    for one in jobs:
        one.future.result(10)
    while len(done) < 4:
        time.sleep(0.01)
    service.close()
    assert done == ["first", "second", "job", "chore"]


def test_dropped_and_late_work_is_not_done_and_a_fault_stays_with_its_own(
    service: Service, png: Callable[[int], bytes]
) -> None:
    def fault(*_: object) -> None:
        raise ValueError("of this one")

    def finish(*_: object) -> str:
        return "done"

    left = service.work((picture(64), "left"), None, finish)
    left.dropped = True
    late = Work(picture(64), "late", None, finish, deadline=time.monotonic() - 1)
    works = [left, late, service.work((images.load(png(3)), "f"), None, fault)]
    good = service.work((picture(64), "good"), None, finish)
    for one in [*works, good]:
        service.worker.submit(one)
    assert good.future.result(10) == "done"
    expected = [Dropped, Dropped, ValueError]
    assert [type(one.future.exception(10)) for one in works] == expected
    service.close()
