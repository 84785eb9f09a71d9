"""What is to be segmented: a folder, a glob, a list, a tar, or any of them behind a URL.

An item's name is its place below the input, and outputs mirror it.
"""

from __future__ import annotations

import csv
import io
import posixpath
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from naclip.bulk.stores import file_system, is_url, reason_of
from naclip.errors import DataError, ImageError, MissingExtraError, UsageError

IMAGES = (
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".tif", ".tiff", ".bmp", ".gif"),
    *(".ppm", ".pgm", ".pbm", ".avif", ".jp2", ".j2k"),
)
LISTS = (".txt", ".csv", ".parquet")
COLUMNS = ("path", "image", "file", "filename", "url")


@dataclass(frozen=True)
class Item:
    name: str  # below the input, with "/"
    place: str  # path or URL of its file, or of the tar that holds it
    offset: int = -1  # in that tar
    size: int = -1
    target: str = ""  # what its outputs are called, without a suffix


@dataclass(frozen=True)
class Inputs:
    root: str  # if this is gone, so is everything
    items: tuple[Item, ...]


def find(source: str, without: str = "") -> Inputs:
    """All items of an input, in the order of their names; none from below `without`."""
    fs, path = file_system(source)
    try:
        root, items = _find(fs, path, source)
    except (OSError, tarfile.TarError, UnicodeDecodeError) as error:
        raise DataError(f"{source}: cannot be read ({reason_of(error)})") from None
    inside = without.rstrip("/") + "/"
    kept = [item for item in items if not (without and item.place.startswith(inside))]
    if not kept:
        raise DataError(f"{source}: no images found: expected files like {', '.join(IMAGES[:4])}")
    return Inputs(root, tuple(_with_targets(sorted(kept, key=lambda item: item.name))))


def _find(fs: Any, path: str, source: str) -> tuple[str, list[Item]]:
    suffix = posixpath.splitext(path)[1].lower()
    if fs.isdir(path):
        return _place(fs, path), _files(fs, path, fs.find(path))
    if fs.isfile(path):
        if suffix == ".tar":
            return _place(fs, path), _members(fs, path, "")
        if suffix in LISTS:
            return "", _listed(fs, path, suffix)
        if suffix in IMAGES:
            return "", [Item(posixpath.basename(path), _place(fs, path))]
        known = ", ".join((*LISTS, ".tar"))
        raise UsageError(f"{source}: expected a folder, a glob, an image, or one of {known}")
    if any(sign in path for sign in "*?["):
        return _globbed(fs, path)
    raise DataError(f"{source}: no such file or folder")


def _place(fs: Any, path: str) -> str:
    local = "file" in ((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol)
    return path if local else str(fs.unstrip_protocol(path))


def _files(fs: Any, root: str, paths: Iterable[str]) -> list[Item]:
    """Images among files; hidden ones (`._a.jpg` of other systems) are not what users see."""
    items = []
    for path in paths:
        name = posixpath.relpath(path, root) if root else path
        hidden = any(part.startswith(".") for part in name.split("/"))
        if not hidden and name.lower().endswith(IMAGES):
            items.append(Item(name, _place(fs, path)))
    return items


def _globbed(fs: Any, pattern: str) -> tuple[str, list[Item]]:
    fixed = pattern[: min(pattern.find(sign) for sign in "*?[" if sign in pattern)]
    root = posixpath.dirname(fixed)
    paths = sorted(path for path in fs.glob(pattern) if fs.isfile(path))
    tars = [path for path in paths if path.endswith(".tar")]
    items = _files(fs, root, paths)
    for tar in tars:
        items += _members(fs, tar, posixpath.splitext(posixpath.relpath(tar, root))[0] + "/")
    return _place(fs, root), items


def _members(fs: Any, path: str, prefix: str) -> list[Item]:
    """Images of a plain tar (WebDataset): where each begins, so that any of them can be read."""
    with fs.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
        return [
            Item(prefix + _inside(member.name), _place(fs, path), member.offset_data, member.size)
            for member in tar
            if member.isfile() and member.name.lower().endswith(IMAGES)
        ]


def _inside(name: str) -> str:
    """A name that cannot lead out of the output."""
    return "/".join(part for part in name.split("/") if part not in ("", ".", ".."))


def _listed(fs: Any, path: str, suffix: str) -> list[Item]:
    folder = posixpath.dirname(path)
    data = fs.cat_file(path)
    texts = _parquet(data, path) if suffix == ".parquet" else _lines(data.decode("utf-8-sig"), path)
    places = [_resolved(text, _place(fs, folder)) for text in dict.fromkeys(texts)]
    if not places:
        return []
    above = posixpath.commonpath([place.replace("://", "/") for place in places])
    if len(places) == 1 or above in places:
        above = posixpath.dirname(above)
    home = _place(fs, folder).replace("://", "/").rstrip("/")
    above = home if above.startswith(home + "/") else above
    return [
        Item(_inside(posixpath.relpath(place.replace("://", "/"), above)), place)
        for place in places
    ]


def _resolved(text: str, folder: str) -> str:
    if is_url(text) or text.startswith("/"):
        return text
    scheme, separator, rest = folder.rpartition("://")
    return scheme + separator + posixpath.normpath(posixpath.join(rest, text))


def _lines(text: str, path: str) -> list[str]:
    if not path.lower().endswith(".csv"):
        return [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]
    rows = [row for row in csv.reader(io.StringIO(text)) if any(row)]
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    column = next((header.index(name) for name in COLUMNS if name in header), None)
    if column is not None:
        return [row[column].strip() for row in rows[1:]]
    if any(len(row) > 1 for row in rows):
        raise DataError(f"{path}: no column of paths: call it {', '.join(COLUMNS[:-1])} or url")
    return [row[0].strip() for row in rows]


def _parquet(data: bytes, path: str) -> list[str]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(
            f"{path}: Parquet needs pyarrow: pip install 'naclip[cloud]'"
        ) from None
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        column = next((name for name in file.schema_arrow.names if name.lower() in COLUMNS), None)
        if column is None:
            raise DataError(f"{path}: no column of paths: call it {', '.join(COLUMNS[:-1])} or url")
        return [str(value) for value in file.read([column]).column(0).to_pylist() if value]
    except ValueError as error:  # of Arrow
        raise DataError(f"{path}: cannot be read as Parquet ({reason_of(error)})") from None


def _with_targets(items: Sequence[Item]) -> list[Item]:
    """a.jpg -> a; where only the suffix tells two apart, it stays: a.jpg, a.png."""
    stems = Counter(posixpath.splitext(item.name)[0] for item in items)
    made = []
    for item in items:
        stem = posixpath.splitext(item.name)[0]
        made.append(replace(item, target=stem if stems[stem] == 1 else item.name))
    targets = Counter(item.target for item in made)
    twice = next((target for target, count in targets.items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"two images would be written to {twice}: give one another name")
    return made


def read(item: Item) -> bytes:
    """The bytes of an image; an error that names it."""
    try:
        if is_url(item.place):
            fs, path = file_system(item.place)
            end = item.offset + item.size
            data = fs.cat_file(path, item.offset, end) if item.size >= 0 else fs.cat_file(path)
            return bytes(data)
        with Path(item.place).open("rb") as file:
            file.seek(max(item.offset, 0))
            return file.read(item.size)
    except FileNotFoundError:
        raise ImageError(f"{item.name}: no such file") from None
    except Exception as error:  # clients of object stores raise anything
        raise ImageError(f"{item.name}: cannot be read ({reason_of(error)})") from None


def is_lost(root: str) -> bool:
    """The whole input is gone or closed, not one image of it: a disk was unmounted, say."""
    if not root:
        return False
    fs, path = file_system(root)
    try:
        if fs.isdir(path):
            fs.ls(path, detail=False)
        return not fs.exists(path)
    except Exception:
        return True
