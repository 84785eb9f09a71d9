"""What is to be segmented: a folder, a glob, a list, a tar, or any of them behind a URL.

An item's name is its place below the input, and outputs mirror it.
"""

from __future__ import annotations

import posixpath
import stat
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from naclip.bulk import lists
from naclip.bulk.stores import file_system, is_url, reason_of
from naclip.errors import DataError, ImageError, UsageError

IMAGES = (
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".tif", ".tiff", ".bmp", ".gif"),
    *(".ppm", ".pgm", ".pbm", ".avif", ".jp2", ".j2k"),
)
LISTS = (".txt", ".csv", ".parquet")


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
            return _listed(fs, path)
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
        if _is_image(name):
            items.append(Item(name, _place(fs, path)))
    return items


def _is_image(name: str) -> bool:
    hidden = any(part.startswith(".") for part in name.split("/"))
    return not hidden and name.lower().endswith(IMAGES)


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
    found = {}  # of two members of one name the later holds, as where a tar is unpacked
    with fs.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            name = _inside(member.name)
            if member.isfile() and _is_image(name):
                at = (member.offset_data, member.size)
                found[member.name] = Item(prefix + name, _place(fs, path), *at)
        file.seek(tar.offset)  # tarfile takes a damaged header for the end
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise tarfile.ReadError(f"what begins at byte {tar.offset} is not a member's header")
    return list(found.values())


def _inside(name: str) -> str:
    """A name that cannot lead out of the output."""
    return "/".join(part for part in name.split("/") if part not in ("", ".", ".."))


def _listed(fs: Any, path: str) -> tuple[str, list[Item]]:
    folder = _place(fs, posixpath.dirname(path))
    data = fs.cat_file(path)
    places = list(dict.fromkeys(_resolved(text, folder) for text in lists.paths(data, path)))
    if not places:
        return "", []
    spots = [_spot(place) for place in places]
    above = posixpath.commonpath(spots)
    if len(spots) == 1 or above in spots:
        above = posixpath.dirname(above)
    root = _of_spot(above, places[0])
    home = _spot(folder)
    above = home if above.startswith(home.rstrip("/") + "/") else above
    items = [
        Item(_inside(posixpath.relpath(spot, above)), place)
        for spot, place in zip(spots, places, strict=True)
    ]
    return ("" if is_lost(root) else root), items  # not all folders of object stores are seen


def _spot(place: str) -> str:
    """A path for URLs and paths alike: s3://bucket/a -> /s3/bucket/a."""
    return "/" + place.replace("://", "/", 1) if is_url(place) else place


def _of_spot(spot: str, example: str) -> str:
    if not is_url(example):
        return spot
    scheme = example.partition("://")[0]
    return f"{scheme}://{rest}" if (rest := spot.removeprefix(f"/{scheme}/")) != spot else ""


def _resolved(text: str, folder: str) -> str:
    if is_url(text) or text.startswith("/"):
        return text
    scheme, separator, rest = folder.rpartition("://")
    return scheme + separator + posixpath.normpath(posixpath.join(rest, text))


def _with_targets(items: Sequence[Item]) -> list[Item]:
    """a.jpg -> a; where only the suffix tells two apart, it stays: a.jpg, a.png.

    It stays also where a folder has the name of the output: a.jpg beside the folder a.png.
    """
    stems = Counter(posixpath.splitext(item.name)[0] for item in items)
    folders = {posixpath.dirname(item.name) for item in items}
    folders |= {parent for folder in folders for parent in _above(folder)}
    made = []
    for item in items:
        stem = posixpath.splitext(item.name)[0]
        is_free = stems[stem] == 1 and not folders & {f"{stem}.png", f"{stem}.jpg"}
        made.append(replace(item, target=stem if is_free else item.name))
    targets = Counter(item.target for item in made)
    twice = next((target for target, count in targets.items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"two images would be written to {twice}: give one another name")
    return made


def _above(folder: str) -> Iterator[str]:
    while folder := posixpath.dirname(folder):
        yield folder


def read(item: Item) -> bytes:
    """The bytes of an image; an error that names it."""
    try:
        if is_url(item.place):
            fs, path = file_system(item.place)
            end = item.offset + item.size
            data = fs.cat_file(path, item.offset, end) if item.size >= 0 else fs.cat_file(path)
            return bytes(data)
        if not stat.S_ISREG(Path(item.place).stat().st_mode):  # a pipe would be waited for
            raise ImageError(f"{item.name}: not a file")
        with Path(item.place).open("rb") as file:
            file.seek(max(item.offset, 0))
            return file.read(item.size)
    except FileNotFoundError:
        raise ImageError(f"{item.name}: no such file") from None
    except ImageError:
        raise
    except Exception as error:  # clients of object stores raise anything
        raise ImageError(f"{item.name}: cannot be read ({reason_of(error)})") from None


def is_lost(root: str) -> bool:
    """The whole input is gone or closed, not one image of it: a disk was unmounted, say."""
    if not root:
        return False
    fs, path = file_system(root)
    fs.invalidate_cache()  # what it remembers is there for ever
    try:
        if fs.isdir(path):
            fs.ls(path, detail=False)
        return not fs.exists(path)
    except Exception:
        return True
