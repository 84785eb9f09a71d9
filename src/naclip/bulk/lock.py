"""One process at a time on one output.

A folder is locked by the kernel: the lock ends with its process, however that ends. An object
store has no locks: there the holder says every so often that it is still alive.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from naclip.bulk.stores import LocalStore, Store
from naclip.errors import NaclipError, OutputError, UsageError

NAME = ".naclip/lock"
BEAT, STALE = 20.0, 90.0  # seconds


@contextmanager
def locked(store: Store) -> Iterator[Callable[[], None]]:
    """A check, to be made every so often: that nobody else has taken the output over."""
    with _by_kernel(store) if isinstance(store, LocalStore) else _by_heartbeat(store) as check:
        yield check


def _busy(store: Store, holder: str, more: str = "") -> UsageError:
    return UsageError(
        f"{store.root}: another process is at work on it ({holder}): wait for it, or name another "
        f"output{more}"
    )


def _me() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextmanager
def _by_kernel(store: LocalStore) -> Iterator[Callable[[], None]]:
    import fcntl

    path = Path(store.root, NAME)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise _busy(store, file.read().strip() or "just started") from None
        except OSError as error:
            raise OutputError(f"{path}: cannot be locked ({error.strerror})") from None
        file.truncate(0)
        file.write(_me())
        file.flush()
        yield lambda: None


@contextmanager
def _by_heartbeat(store: Store) -> Iterator[Callable[[], None]]:
    token = secrets.token_hex(8)
    held = _held(store)
    if held and time.time() - held["at"] < STALE and not _is_dead(held):
        more = f" (if it is dead, its claim ends {STALE:.0f} s after its last sign of life)"
        raise _busy(store, held["holder"], more)
    claim = {"token": token, "holder": _me(), "host": socket.gethostname(), "pid": os.getpid()}
    _beat(store, claim)
    held = _held(store)  # of two that claim it at once, the later writer keeps it
    if held and held["token"] != token:
        raise _busy(store, held["holder"])
    stop = threading.Event()
    taken: list[str] = []  # by whom, while this process slept for longer than STALE

    def live() -> None:
        while not stop.wait(BEAT) and not taken:
            with suppress(NaclipError):  # the run itself meets a store that is gone
                held = _held(store)
                if held and held["token"] != token:
                    taken.append(held["holder"])
                else:
                    _beat(store, claim)

    def check() -> None:
        if taken:
            raise _busy(store, taken[0])

    thread = threading.Thread(target=live, name="naclip-lock", daemon=True)
    thread.start()
    try:
        yield check
    finally:
        stop.set()
        thread.join()
        with suppress(Exception):
            if not taken:
                store.delete(NAME)


def _beat(store: Store, claim: dict[str, Any]) -> None:
    store.write(NAME, json.dumps({**claim, "at": time.time()}).encode())


def _held(store: Store) -> dict[str, Any] | None:
    data = store.read(NAME)
    try:
        return dict(json.loads(data)) if data else None
    except ValueError:
        return None


def _is_dead(held: dict[str, Any]) -> bool:
    """Known only of a process of this machine."""
    if held.get("host") != socket.gethostname():
        return False
    try:
        os.kill(int(held["pid"]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
