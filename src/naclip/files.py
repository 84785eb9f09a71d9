"""Writing files whole or not at all, and where caches live."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from naclip.errors import OutputError


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is complete."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
        temporary.replace(target)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)


def cache_folder() -> Path:
    """NACLIP_CACHE, else XDG_CACHE_HOME/naclip, else ~/.cache/naclip."""
    own = os.environ.get("NACLIP_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "naclip"
