"""What is remembered between runs: vectors of names, and hashes of checkpoint files.

One small SQLite database: several processes may use it at once, a crash cannot tear it, and it is
bounded: the rows unused for longest go first. A cache that cannot be used costs time, never a
result.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path

from naclip.files import cache_folder

MAX_ROWS = 100_000  # 200 MB of vectors of 512 numbers

SCHEMA = "create table if not exists cache (key text primary key, value blob, used real)"
TRIM = "delete from cache where key in (select key from cache order by used desc limit -1 offset ?)"


def get(keys: Iterable[str]) -> dict[str, bytes]:
    """The values of those keys that are known."""
    found: dict[str, bytes] = {}
    try:
        with closing(_open()) as database, database:
            for key in keys:
                row = database.execute("select value from cache where key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = row[0]
            now = time.time()
            database.executemany(
                "update cache set used = ? where key = ?", ((now, key) for key in found)
            )
    except (sqlite3.Error, OSError) as error:
        _clear_if_damaged(error)  # not usable: everything is computed
    return found


def put(values: Mapping[str, bytes]) -> None:
    now = time.time()
    try:
        with closing(_open()) as database, database:
            database.executemany(
                "insert or replace into cache values (?, ?, ?)",
                ((key, value, now) for key, value in values.items()),
            )
            database.execute(TRIM, (MAX_ROWS,))
    except (sqlite3.Error, OSError) as error:
        _clear_if_damaged(error)  # not usable: computed again next time


def _path() -> Path:
    return cache_folder() / "cache.sqlite"


def _open() -> sqlite3.Connection:
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connect(path)
    except sqlite3.DatabaseError as error:
        _clear_if_damaged(error)
        return _connect(path)


def _clear_if_damaged(error: Exception) -> None:
    """A damaged database is removed; one that is locked or not writable is somebody else's."""
    if type(error) is sqlite3.DatabaseError:  # its subclasses are for the others
        with suppress(OSError):
            _path().unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=5)
    try:
        database.execute(SCHEMA)
    except sqlite3.Error:
        database.close()
        raise
    return database


def sha256(path: Path) -> str:
    """Of a file, remembered for as long as its size and time of change stay the same."""
    status = path.stat()
    key = f"sha256 {path.resolve()} {status.st_size} {status.st_mtime_ns}"
    known = get([key])
    if key in known:
        return known[key].decode()
    with path.open("rb") as file:
        hasher = hashlib.sha256()
        while chunk := file.read(1 << 22):
            hasher.update(chunk)
    put({key: hasher.hexdigest().encode()})
    return hasher.hexdigest()
