"""Writing files whole or not at all, and where caches live."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from naclip.errors import OutputError

DEVICES = (Path("/dev"), Path("/dev/fd"))


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is complete."""
    target = Path(path)
    temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        if is_special(target):
            with target.open("wb") as file:
                yield file
            return
        with temporary.open("xb") as file:
            yield file
        temporary.replace(target)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{target}: cannot be written ({reason})") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def is_special(path: Path) -> bool:
    """/dev/null, /dev/stdout, a pipe: written to as they are, and never replaced by a file."""
    if path.is_dir() or not path.exists():
        return False
    # /dev/stdout is a file where it is redirected to one: replacing it would replace the device.
    return not path.is_file() or path.absolute().parent in DEVICES


def is_file(path: Path) -> bool:
    """As Path.is_file, but a name too long for the file system is no file and no error."""
    with suppress(OSError):
        return path.is_file()
    return False


def is_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir()
    return False


def cache_folder() -> Path:
    """NACLIP_CACHE, else XDG_CACHE_HOME/naclip, else ~/.cache/naclip."""
    own = os.environ.get("NACLIP_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "naclip"
