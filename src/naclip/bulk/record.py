"""Which chunks are done, durably: a killed run goes on where it was.

A line of JSON a chunk, written after all outputs of the chunk are. In a folder lines are appended
to one file, each synced; an object store cannot append, so there lines are collected for some
seconds and become an object. Of two lines about one chunk the later holds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from naclip.bulk.chunks import Outcome
from naclip.bulk.stores import LocalStore, Store
from naclip.errors import DataError, OutputError

NAME = ".naclip/record.jsonl"
PARTS = ".naclip/record"
SECONDS, LINES = 5.0, 500  # of a part in an object store


class Log(Protocol):
    """Lines of earlier runs, and more of them."""

    def lines(self) -> Iterator[bytes]: ...
    def add(self, line: bytes) -> None: ...
    def close(self) -> None: ...


class FileLog:
    def __init__(self, store: LocalStore) -> None:
        self._path = Path(store.root, NAME)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)  # nothing stays behind to be flushed
            store.settle([NAME])
        except OSError as error:
            raise OutputError(f"{self._path}: cannot be written ({error.strerror})") from None

    def lines(self) -> Iterator[bytes]:
        """What a crash left behind the last newline is cut off."""
        sound = 0
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                sound += len(line)
                yield line
        self._file.truncate(sound)

    def add(self, line: bytes) -> None:
        try:
            rest = memoryview(line)
            while rest:  # a disk that becomes full takes a part
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OutputError(f"{self._path}: cannot be written ({error.strerror})") from None

    def close(self) -> None:
        self._file.close()


class ObjectLog:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts = 0
        self._waiting: list[bytes] = []
        self._since = time.monotonic()

    def lines(self) -> Iterator[bytes]:
        names = self._store.names(PARTS)
        self._parts = 1 + max((int(Path(name).stem) for name in names), default=-1)
        for name in names:
            yield from (self._store.read(name) or b"").splitlines(keepends=True)

    def add(self, line: bytes) -> None:
        self._waiting.append(line)
        if len(self._waiting) >= LINES or time.monotonic() - self._since > SECONDS:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._store.write(f"{PARTS}/{self._parts:08d}.jsonl", b"".join(self._waiting))
            self._parts += 1
            self._waiting = []
        self._since = time.monotonic()

    def close(self) -> None:
        self._flush()


class Record:
    """Memory: a byte a chunk, and the failures."""

    def __init__(self, store: Store, chunks: int, chunk_size: int) -> None:
        self.failed: dict[int, dict[int, str]] = {}  # chunk -> position -> why
        self.images = 0  # of the chunks that are done
        self._size = chunk_size
        self._done = bytearray(chunks)
        self._log: Log = FileLog(store) if isinstance(store, LocalStore) else ObjectLog(store)
        for number, line in enumerate(self._log.lines(), start=1):
            try:
                self._note(_decoded(line))
            except (ValueError, KeyError, TypeError, IndexError, AttributeError):
                raise DataError(
                    f"{store.root}/{NAME}: line {number} is damaged: --overwrite begins anew"
                ) from None

    def add(self, outcome: Outcome) -> None:
        self._note(outcome)
        self._log.add(_encoded(outcome))

    def _note(self, outcome: Outcome) -> None:
        if not self._done[outcome.number]:
            self.images += outcome.count
        self._done[outcome.number] = 1
        self.failed.pop(outcome.number, None)
        if outcome.failed:
            self.failed[outcome.number] = outcome.failed

    def todo(self, retry_failed: bool) -> Iterable[int]:
        """A chunk with a failure is repeated whole: its images go through the model together."""
        for number, done in enumerate(self._done):
            if not done or (retry_failed and number in self.failed):
                yield number

    def failures(self) -> Iterator[tuple[int, str]]:
        """(index of the item, why), in order."""
        for number in sorted(self.failed):
            for at, reason in sorted(self.failed[number].items()):
                yield number * self._size + at, reason

    @property
    def failure_count(self) -> int:
        return sum(map(len, self.failed.values()))

    @property
    def is_complete(self) -> bool:
        return all(self._done)

    def close(self) -> None:
        self._log.close()


def _encoded(outcome: Outcome) -> bytes:
    fields: dict[str, Any] = {"chunk": outcome.number, "images": outcome.count}
    if outcome.failed:
        fields["failed"] = outcome.failed
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _decoded(line: bytes) -> Outcome:
    fields = json.loads(line)
    failed = {int(at): str(reason) for at, reason in fields.get("failed", {}).items()}
    return Outcome(int(fields["chunk"]), int(fields["images"]), failed)
