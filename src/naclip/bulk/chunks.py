"""Consecutive items that go through the model together: the unit of work and of resuming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from naclip.bulk.inputs import Item


@dataclass(frozen=True)
class Chunk:
    number: int
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Outcome:
    """A chunk whose outputs are all written."""

    number: int
    count: int  # of its items
    failed: dict[int, str] = field(default_factory=dict)  # position in the chunk -> why


def chunk_count(items: int, size: int) -> int:
    return -(-items // size)


def chunk_of(items: Sequence[Item], size: int, number: int) -> Chunk:
    return Chunk(number, tuple(items[number * size : (number + 1) * size]))
