"""Threads between reading and writing: order, bounds, errors, as seen from outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naclip.bulk.local import staged, threads_divided


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0, 0.003), max_size=20), st.integers(1, 4))
def test_results_come_in_the_order_of_the_items(delays: list[float], threads: int) -> None:
    def work(at: int) -> int:
        time.sleep(delays[at])
        return at

    assert list(staged(work, range(len(delays)), threads)) == list(range(len(delays)))


@pytest.mark.parametrize("threads", [1, 3])
def test_only_so_many_items_are_taken_ahead(threads: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    for number in staged(lambda n: n, items(), threads):
        assert len(taken) <= number + 1 + threads


def test_all_threads_work_at_once() -> None:
    meeting = threading.Barrier(3, timeout=30)
    assert list(staged(lambda n: meeting.wait() * 0 + n, range(6), 3)) == list(range(6))


def test_what_is_underway_is_finished_before_the_items_error() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise ValueError("the input is gone")

    results = staged(lambda n: n, items(), 3)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="the input is gone"):
        next(results)


def test_an_error_of_the_work_stops_it() -> None:
    with pytest.raises(ZeroDivisionError):
        list(staged(lambda n: 1 // (n - 2), range(100), 2))


def test_threads_are_given_back_even_after_an_error() -> None:
    before = torch.get_num_threads()

    def fail() -> None:
        with threads_divided(2):
            raise ValueError(f"with {torch.get_num_threads()}")

    with pytest.raises(ValueError, match=f"^with {max(1, before // 2)}$"):
        fail()
    assert torch.get_num_threads() == before
