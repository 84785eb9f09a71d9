"""Parts of the service that need no process: run lengths, memory, the order of work."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from naclip import images
from naclip.images import Picture
from naclip.pipeline import Segmenter
from naclip.serve.answers import run_lengths
from naclip.serve.jobs import Job
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
    late = Work(picture(64), "late", None, finish, seconds=-1)
    works = [left, late, service.work((images.load(png(3)), "f"), None, fault)]
    good = service.work((picture(64), "good"), None, finish)
    for one in [*works, good]:
        service.worker.submit(one)
    assert good.future.result(10) == "done"
    expected = [Dropped, Dropped, ValueError]
    assert [type(one.future.exception(10)) for one in works] == expected
    service.close()


def test_what_waits_behind_all_others_is_not_late_for_it(service: Service) -> None:
    """Each image of a job has its seconds from when it is begun."""
    gate = threading.Event()
    blocker = service.work((picture(64), "b"), None, lambda *_: gate.wait(10))
    patient, urgent = (
        Work(picture(64), name, None, lambda *_: "done", 0.2, urgent=name == "urgent")
        for name in ("patient", "urgent")
    )
    for one in (blocker, patient, urgent):
        service.worker.submit(one)
    time.sleep(0.4)
    gate.set()
    assert patient.future.result(10) == "done"
    assert isinstance(urgent.future.exception(10), Dropped)
    service.close()


def test_a_chore_that_fails_does_not_end_the_thread_of_all(service: Service) -> None:
    def fault() -> None:
        raise OSError("no space left")

    service.worker.when_idle([fault])
    time.sleep(0.1)
    work = service.work((picture(64), "after"), None, lambda *_: "done")
    service.worker.submit(work)
    assert work.future.result(10) == "done"
    service.close()


def test_a_jobs_results_are_kept_as_json_and_need_not_be_sent() -> None:
    job = Job([b"1", b"2", b"3"], None, None, None)  # type: ignore[arg-type]
    job.finish(b'{"classes": []}', failed=False)
    job.finish(b'{"problem": {"status": 422}}', failed=True)
    found = json.loads(bytes(job.document().body))
    assert found["results"] == [
        {"image": 0, "classes": []},
        {"image": 1, "problem": {"status": 422}},
    ]
    assert (found["images"], found["done"], found["failed"]) == (3, 1, 1)
    assert "results" not in json.loads(bytes(job.document(results=False).body))
