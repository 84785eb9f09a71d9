"""Many machines: chunks are the rows of a Ray data set, and each actor holds one model.

Actors write the outputs themselves and send back only which chunks are done, so the driver never
sees a pixel. A task that Ray repeats, because a machine was taken away, writes the same bytes under
the same names once more.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from naclip import errors
from naclip.bulk import local
from naclip.bulk.chunks import Chunk, Outcome
from naclip.bulk.inputs import Item
from naclip.bulk.manifest import NAME
from naclip.bulk.stores import LocalStore, reason_of
from naclip.bulk.worker import Task, Worker
from naclip.errors import FailureError, MissingExtraError, NaclipError, OutputError, SettingsError
from naclip.pipeline import Segmenter
from naclip.settings import Device

CHUNKS_AT_ONCE = 4  # of one call of an actor: what is lost with it


@dataclass(frozen=True)
class RayCluster:
    """A pool of actors that grows from the first number to the second while there is work.

    address   of a running cluster; None: the one that RAY_ADDRESS names, or a new one right here
    gpus      of each actor: 1, or a fraction where several models share one
    """

    address: str | None = None
    actors: tuple[int, int] = (1, 1000)
    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        low, high = self.actors
        if not 1 <= low <= high:
            raise SettingsError(f"actors is {low},{high}: use a smallest and a largest number")
        if self.cpus < 0 or self.gpus < 0:
            raise SettingsError(f"cpus {self.cpus} and gpus {self.gpus}: use numbers from 0 on")

    @property
    def device(self) -> Device:
        return "cuda" if self.gpus else "cpu"

    def __call__(
        self, task: Task, segmenter: Segmenter, chunks: Iterable[Chunk]
    ) -> Iterator[Outcome]:
        del segmenter  # actors load their own
        rows = [_row(chunk) for chunk in chunks]
        with connected(self.address) as ray:
            shipped = ray.put(task)  # once a machine, not once an actor
            answers = self.mapped(ray.data.from_items, rows, Actor, shipped, CHUNKS_AT_ONCE)
            for answer in answers:
                yield _outcome(unless_stopped(json.loads(answer["outcome"])))

    def mapped(
        self, from_items: Any, rows: list[dict[str, Any]], actor: type, shipped: Any, at_once: int
    ) -> Iterator[dict[str, Any]]:
        """Rows through a pool of actors, in the order in which they are finished."""
        from ray.data import ActorPoolStrategy

        blocks = -(-len(rows) // at_once)
        low, high = (min(number, blocks) for number in self.actors)
        answers = from_items(rows, override_num_blocks=blocks).map_batches(
            actor,
            fn_constructor_args=(shipped,),
            batch_size=at_once,
            compute=ActorPoolStrategy(min_size=low, max_size=high),
            num_cpus=self.cpus,
            num_gpus=self.gpus or None,
        )
        yield from answers.iter_rows()


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray; a cluster that this process is not connected to already is left again."""
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtraError("--engine ray needs Ray: pip install 'naclip[ray]'") from None
    own = not ray.is_initialized()
    if own:
        _check_reachable(address)
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = address or "the default address"
            raise FailureError(f"Ray cannot start at {where}: {reason_of(error)}") from None
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False  # there is one already
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise FailureError(
            f"Ray gave up ({reason_of(error)}): what is done is kept, and the same command goes on "
            "from here"
        ) from None
    finally:
        if own:
            ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Within seconds; Ray itself tries for minutes."""
    asked = address or os.environ.get("RAY_ADDRESS", "")
    if asked.startswith("ray://"):
        raise SettingsError(
            f"{asked}: Ray Data does not work through Ray Client: run the command on a machine of "
            "the cluster with --address auto, or send it there with `ray job submit`"
        )
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdigit():
        return  # auto, or none
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise FailureError(
            f"no Ray cluster at {address} ({reason_of(error)}): start one with `ray start --head`, "
            "or leave --address out"
        ) from None


class Actor:
    """Chunks in, outcomes out. Errors travel as data: Ray would wrap them in its own."""

    def __init__(self, shipped: Any) -> None:
        import ray

        self._task: Task = ray.get(shipped) if isinstance(shipped, ray.ObjectRef) else shipped
        self._worker: Worker | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        chunks = [_chunk(json.loads(row)) for row in batch["chunk"]]
        try:
            worker = self._worker or self._opened()
            done = [asdict(outcome) for outcome in local.outcomes(worker, chunks, 1, 1)]
        except NaclipError as error:
            return {"outcome": [json.dumps(stopped(error))]}
        return {"outcome": [json.dumps(outcome) for outcome in done]}

    def _opened(self) -> Worker:
        store = self._task.store
        if isinstance(store, LocalStore) and not Path(store.root, NAME).exists():
            raise OutputError(
                f"{store.root}: not the same folder on every machine of the cluster: use one that "
                "all of them see, or a URL"
            )
        self._worker = Worker(self._task, self._task.model.open(self._task.weights))
        return self._worker


def stopped(error: NaclipError) -> dict[str, str]:
    return {"stop": type(error).__name__, "message": str(error)}


def unless_stopped(answer: dict[str, Any]) -> dict[str, Any]:
    """An actor's answer; the error that it met there is raised here."""
    if "stop" in answer:
        raise getattr(errors, answer["stop"])(answer["message"])
    return answer


def _row(chunk: Chunk) -> dict[str, str]:
    items = [list(vars(item).values()) for item in chunk.items]
    return {"chunk": json.dumps({"number": chunk.number, "items": items})}


def _chunk(fields: dict[str, Any]) -> Chunk:
    return Chunk(fields["number"], tuple(Item(*item) for item in fields["items"]))


def _outcome(fields: dict[str, Any]) -> Outcome:
    failed = {int(at): reason for at, reason in fields["failed"].items()}
    return replace(Outcome(**fields), failed=failed)
