"""How kernels are compiled, where the result is kept, and how they share the CPU's cores."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from numba import config as numba_config
from numba import njit

from naclip.files import cache_folder

HERE = Path(__file__).parent
CONFIG: Any = numba_config
VERSIONS_KEPT = 4


@functools.cache
def folder() -> Path | None:
    """Where compiled code is kept; None where nothing can be written.

    Numba itself notices changes only of the file that a function is in, not of the helpers that it
    was compiled with, so the folder is named after the contents of all of them.
    """
    sources = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))
    version = hashlib.sha256(sources).hexdigest()[:12]
    own = [Path(CONFIG.CACHE_DIR)] if CONFIG.CACHE_DIR else [HERE / "__pycache__"]
    for base in (*own, cache_folder() / "numba"):
        try:
            (base / version).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(base / version, os.W_OK):
            _forget_old(base)
            return base / version
    return None


def _forget_old(base: Path) -> None:
    versions = [path for path in base.iterdir() if path.is_dir() and len(path.name) == 12]
    versions.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in versions[VERSIONS_KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile at the first call, keep it on disk; the interpreter runs on meanwhile (no GIL)."""
    target = folder()
    before = CONFIG.CACHE_DIR
    CONFIG.CACHE_DIR = str(target or "")  # read when the decorator below picks a place
    try:
        return njit(nogil=True, error_model="numpy", cache=target is not None)(function)
    finally:
        CONFIG.CACHE_DIR = before


@functools.cache
def announce() -> None:
    """Say once why the first image on a machine takes some seconds longer."""
    target = folder()
    if target is None or not any(target.rglob("*.nbi")):
        print("naclip: compiling for this CPU, some 10 seconds, once", file=sys.stderr)


def threads() -> int:
    return torch.get_num_threads()


@functools.lru_cache(maxsize=1)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="naclip")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child inherits no threads


def spread(work: Callable[[int, int], None], count: int, pieces: int = 0) -> None:
    """work(first, last) over 0..count-1, in pieces, on as many threads as torch uses.

    Our own threads and not Numba's: those may not be entered from two threads at a time.
    """
    workers = min(threads(), count)
    if workers <= 1:
        work(0, count)
        return
    pieces = min(count, pieces or workers)
    edges: Sequence[int] = [count * piece // pieces for piece in range(pieces + 1)]
    for done in [
        _pool(threads()).submit(work, first, last) for first, last in itertools.pairwise(edges)
    ]:
        done.result()
