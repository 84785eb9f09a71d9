"""Where the outputs of each image go, decided and checked before any work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from naclip.errors import OutputError, UsageError
from naclip.files import is_special

if TYPE_CHECKING:
    from naclip.results import Segmentation

STDOUT = (Path("/dev/stdout"), Path("/dev/fd/1"))
SUFFIXES = {"mask": ".png", "overlay": ".jpg", "scores": ".npz"}


@dataclass(frozen=True)
class Targets:
    """paths[kind][image] for the kinds of output that were asked for."""

    paths: Mapping[str, Mapping[Path, Path]]

    @staticmethod
    def plan(images: Sequence[Path], asked: Mapping[str, Path | None]) -> Targets:
        """One image may name its file; several need a folder, and names that do not collide."""
        paths: dict[str, dict[Path, Path]] = {}
        for kind, named in asked.items():
            target = STDOUT[0] if named == Path("-") else named
            if target is None:
                continue
            if _is_folder(target):
                paths[kind] = _inside(target, images, SUFFIXES[kind])
            elif len(images) == 1:
                _check_suffix(kind, target)
                paths[kind] = {images[0]: target}
            else:
                raise UsageError(
                    f"{target} is one file for {len(images)} images: name a folder, {target.stem}/"
                )
        _check_targets([path for mapping in paths.values() for path in mapping.values()], images)
        return Targets(paths)

    def write(self, image: Path, result: Segmentation) -> None:
        save = {"mask": result.save, "overlay": result.save_overlay, "scores": result.save_scores}
        for kind, mapping in self.paths.items():
            save[kind](mapping[image])

    @property
    def use_stdout(self) -> bool:
        """An output goes to standard output: nothing else may be printed there."""
        return any(path in STDOUT for mapping in self.paths.values() for path in mapping.values())

    def of(self, image: Path) -> list[Path]:
        return [mapping[image] for mapping in self.paths.values()]


def _is_folder(target: Path) -> bool:
    if is_special(target):
        return False
    return target.is_dir() or (target.suffix == "" and not target.is_file())


def _inside(folder: Path, images: Sequence[Path], suffix: str) -> dict[Path, Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror})") from None
    return {image: folder / (image.stem + suffix) for image in images}


def _check_suffix(kind: str, target: Path) -> None:
    allowed = {
        "mask": (".png",),
        "overlay": (".png", ".jpg", ".jpeg", ".webp"),
        "scores": (".npz",),
    }[kind]
    if is_special(target) and kind != "overlay":  # a pipe has no suffix, nor needs one
        return
    if target.suffix.lower() not in allowed:
        a = "an" if kind == "overlay" else "a"
        raise UsageError(f"{target}: {a} {kind} file ends in {', '.join(allowed)}")
    if not target.parent.is_dir():
        raise OutputError(f"{target}: the folder {target.parent} does not exist")


def _check_targets(targets: Sequence[Path], images: Sequence[Path]) -> None:
    sources = {image.resolve() for image in images}
    seen: set[Path] = set()
    for target in targets:
        resolved = target.resolve()
        if resolved in seen:
            raise UsageError(f"two outputs would be written to {target}: use separate folders")
        if resolved in sources:
            raise UsageError(f"{target} is an input image: it would be overwritten")
        seen.add(resolved)
