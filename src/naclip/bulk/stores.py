"""Where outputs go: a folder, or an object store behind an fsspec URL. Files appear whole."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from naclip.errors import MissingExtraError, OutputError, UsageError
from naclip.files import atomic

KEY_LIMIT = 1024  # bytes of a name in S3 and Google's store
TEMPORARY = f".{'[0-9a-f]' * 16}.tmp"  # of naclip.files.atomic


def is_url(place: str) -> bool:
    return "://" in place


def reason_of(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:200]


def file_system(place: str) -> tuple[Any, str]:
    """fsspec's file system for a path or URL, and the path in it; remembered by fsspec itself."""
    from fsspec.core import url_to_fs

    try:
        fs, path = url_to_fs(place)
    except ImportError as error:
        raise MissingExtraError(
            f"{place}: {reason_of(error)}; for s3:// pip install 'naclip[cloud]'"
        ) from None
    except ValueError as error:
        raise UsageError(f"{place}: not a path or URL that fsspec knows ({error})") from None
    return fs, path


class Store(Protocol):
    """Small files by name ("masks/a/b.png"), written whole; it travels to other machines."""

    @property
    def root(self) -> str: ...
    def write(self, name: str, data: bytes) -> None: ...
    def write_pieces(self, name: str, pieces: Iterable[bytes]) -> None: ...
    def read(self, name: str) -> bytes | None: ...
    def names(self, folder: str) -> list[str]: ...
    def delete(self, name: str) -> None: ...
    def delete_tree(self, folder: str) -> None: ...
    def settle(self, names: Iterable[str]) -> None: ...
    def refusal(self, name: str) -> str | None: ...


def is_text(name: str) -> bool:
    """Not so are names of files in another encoding than UTF-8, which are bytes to the system."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def open_store(output: str) -> Store:
    if is_url(output) and not output.startswith("file://"):
        file_system(output)  # a missing package is known before any work
        return RemoteStore(output.rstrip("/"))
    # Without "..", as fsspec has inputs; links stay as they were named.
    path = Path(os.path.abspath(output.removeprefix("file://")))  # noqa: PTH100
    if path.exists() and not path.is_dir():
        raise UsageError(f"{output} is a file: expected a folder or URL for the output")
    return LocalStore(str(path))


@dataclass(frozen=True)
class LocalStore:
    root: str

    def write(self, name: str, data: bytes) -> None:
        self.write_pieces(name, [data])

    def write_pieces(self, name: str, pieces: Iterable[bytes]) -> None:
        """Contents are on the disk itself, not only on their way there; for names see settle."""
        path = Path(self.root, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{path.parent}: cannot be made ({error.strerror})") from None
        with atomic(path) as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())

    def read(self, name: str) -> bytes | None:
        try:
            return Path(self.root, name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OutputError(f"{self.root}/{name}: cannot be read ({error.strerror})") from None

    def names(self, folder: str) -> list[str]:
        base = Path(self.root)
        found = Path(self.root, folder).rglob("*")
        return sorted(path.relative_to(base).as_posix() for path in found if path.is_file())

    def delete(self, name: str) -> None:
        if self.refusal(name) is None:
            _unlink(Path(self.root, name))

    def delete_tree(self, folder: str) -> None:
        path = Path(self.root, folder)
        if path.exists():
            try:
                shutil.rmtree(path)
            except OSError as error:
                raise OutputError(f"{path}: cannot be deleted ({error.strerror})") from None

    def sweep(self, folders: Iterable[str]) -> None:
        """Delete what killed processes were writing, in these folders and at the top."""
        base = Path(self.root)
        unfinished = [base.glob(TEMPORARY), *(Path(base, f).rglob(TEMPORARY) for f in folders)]
        for path in itertools.chain(*unfinished):
            _unlink(path)

    def settle(self, names: Iterable[str]) -> None:
        """That files have these names, or are gone, is on the disk too: it is in their folders."""
        there = (name for name in names if self.refusal(name) is None)
        above = {parent for name in there for parent in PurePosixPath(name).parents}
        for folder in sorted(above, reverse=True):
            path = Path(self.root, folder)
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue  # nothing was ever written to it
            except OSError as error:
                raise OutputError(f"{path}: cannot be read ({error.strerror})") from None
            try:
                os.fsync(descriptor)
            except OSError as error:
                raise OutputError(f"{path}: cannot be written ({error.strerror})") from None
            finally:
                os.close(descriptor)

    def refusal(self, name: str) -> str | None:
        """Why no file here can be called so."""
        if "\0" in name:
            return "its name holds a NUL byte"
        parts = [len(os.fsencode(part)) for part in name.split("/")]
        if max(parts) > (limit := os.pathconf(self.root, "PC_NAME_MAX")):
            return f"a part of its name would be {max(parts)} bytes: {self.root} takes {limit}"
        whole = len(os.fsencode(f"{self.root}/{name}")) + len(TEMPORARY)  # more than it becomes
        if whole >= (limit := os.pathconf(self.root, "PC_PATH_MAX")):
            return f"the path of its output would be too long: {self.root} takes {limit - 1} bytes"
        return None


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except NotADirectoryError:
        pass  # nothing can be there
    except OSError as error:
        raise OutputError(f"{path}: cannot be deleted ({error.strerror})") from None


@dataclass(frozen=True)
class RemoteStore:
    """An object appears when its upload is complete: that is what object stores promise."""

    root: str

    def write(self, name: str, data: bytes) -> None:
        fs, path = file_system(f"{self.root}/{name}")
        try:
            if not any(kind in fs.protocol for kind in ("s3", "gs", "gcs", "abfs")):
                fs.makedirs(posix_parent(path), exist_ok=True)
            fs.pipe_file(path, data)
        except Exception as error:  # clients of object stores raise anything
            reason = reason_of(error)
            raise OutputError(f"{self.root}/{name}: cannot be written ({reason})") from None

    def write_pieces(self, name: str, pieces: Iterable[bytes]) -> None:
        """By way of a file on this machine: an upload under way would be ended, not taken back."""
        with tempfile.NamedTemporaryFile() as spool:
            spool.writelines(pieces)
            spool.flush()
            fs, path = file_system(f"{self.root}/{name}")
            try:
                fs.put_file(spool.name, path)
            except Exception as error:  # clients of object stores raise anything
                reason = reason_of(error)
                raise OutputError(f"{self.root}/{name}: cannot be written ({reason})") from None

    def read(self, name: str) -> bytes | None:
        fs, path = file_system(f"{self.root}/{name}")
        try:
            return bytes(fs.cat_file(path))
        except FileNotFoundError:
            return None
        except Exception as error:
            reason = reason_of(error)
            raise OutputError(f"{self.root}/{name}: cannot be read ({reason})") from None

    def names(self, folder: str) -> list[str]:
        fs, base = file_system(self.root)
        fs.invalidate_cache()
        start = f"{base.rstrip('/')}/"
        return sorted(path.removeprefix(start) for path in fs.find(start + folder))

    def delete(self, name: str) -> None:
        fs, path = file_system(f"{self.root}/{name}")
        try:
            fs.rm_file(path)
        except FileNotFoundError:
            pass
        except Exception as error:
            reason = reason_of(error)
            raise OutputError(f"{self.root}/{name}: cannot be deleted ({reason})") from None

    def delete_tree(self, folder: str) -> None:
        fs, path = file_system(f"{self.root}/{folder}")
        fs.invalidate_cache()  # of what others have written since
        try:
            fs.rm(path, recursive=True)
        except FileNotFoundError:
            pass
        except Exception as error:
            reason = reason_of(error)
            raise OutputError(f"{self.root}/{folder}: cannot be deleted ({reason})") from None

    def settle(self, names: Iterable[str]) -> None:
        """An object that was taken is there to stay."""

    def refusal(self, name: str) -> str | None:
        if not is_text(name):
            return "its name is not UTF-8, which object stores need: rename it"
        if (length := len(name.encode())) > KEY_LIMIT:
            return f"the name of its output would be {length} bytes: object stores take {KEY_LIMIT}"
        return None


def posix_parent(path: str) -> str:
    return path.rpartition("/")[0]
