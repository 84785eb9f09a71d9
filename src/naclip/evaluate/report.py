"""What an evaluation says: a JSON document that holds all of it, and a table of its classes.

Everything but `times` is the same whenever the same thing is computed again.
"""

from __future__ import annotations

import datetime
import functools
import json
import math
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import naclip
from naclip.errors import DataError
from naclip.evaluate import metric, published
from naclip.evaluate.run import Elsewhere, Evaluated, Options, names_hash
from naclip.files import atomic
from naclip.pipeline import Segmenter
from naclip.vocabulary import templates

FORMAT = "naclip evaluation 1"


def document(result: Evaluated, segmenter: Segmenter, options: Options) -> dict[str, Any]:
    job = result.job
    images = list(result.images.values())
    matrix = metric.total(images, len(job.words.classes))
    return {
        "format": FORMAT,
        "data": data_of(result),
        "model": model_of(segmenter, options.spread),
        "settings": job.settings.flat(),
        "words": {
            "classes": dict(zip(job.words.classes, job.words.names, strict=True)),
            "background": job.words.has_background,
            "prompts": options.prompts,
        },
        "result": numbers(matrix, job.words.classes) | interval_of(result),
        "published": compared(result, segmenter, options.prompts, matrix),
        "skipped": dict(result.skipped),
        "versions": versions(),
        "masks": str(options.masks.resolve()) if options.masks else None,
        "confusion": matrix.tolist(),
        "images": [
            {"image": name, "pixels": entries.ravel().tolist()}
            for name, entries in result.images.items()
        ],
        "times": times(result.seconds),
    }


def data_of(result: Evaluated) -> dict[str, Any]:
    data = result.job.data
    return {
        "name": data.name,
        "root": data.root,
        "images": len(result.images),
        "official_images": data.official or None,
        "images_sha256": names_hash(data),
    }


def model_of(segmenter: Segmenter, elsewhere: Elsewhere | None = None) -> dict[str, Any]:
    return {
        "name": segmenter.model.name,
        "sha256": segmenter.model.fingerprint,
        "activation": segmenter.model.shape.activation,
        **(elsewhere or segmenter).ran_on(),
    }


def numbers(matrix: metric.Counts, classes: tuple[str, ...]) -> dict[str, Any]:
    """Fractions; null for a class that does not occur."""
    found = metric.scores(matrix)
    rows = zip(classes, found.iou, found.accuracy, matrix.sum(axis=1), strict=True)
    return {
        "miou": number(found.miou),
        "macc": number(found.macc),
        "aacc": number(found.aacc),
        "classes": [
            {"class": name, "iou": number(iou), "accuracy": number(acc), "pixels": int(pixels)}
            for name, iou, acc, pixels in rows
        ],
    }


def interval_of(result: Evaluated) -> dict[str, Any]:
    images = list(result.images.values())
    if len(images) < 2:
        return {"miou_interval": None}
    low, high = metric.bootstrap(images, len(result.job.words.classes))
    if math.isnan(low):
        return {"miou_interval": None}
    return {"miou_interval": [number(low), number(high)], "resamples": metric.RESAMPLES}


def number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def compared(
    result: Evaluated, segmenter: Segmenter, prompts: tuple[str, ...], matrix: metric.Counts
) -> dict[str, Any] | None:
    """The paper's number for the same setting, where it has one."""
    data = result.job.data
    if data.name not in published.tables()["benchmarks"]:
        return None
    if result.job.words != data.words or prompts != templates():
        return None
    miou = published.same_setting(data.name, result.job.settings, segmenter.model)
    if miou is None:
        return None
    ours = 100 * metric.scores(matrix).miou
    return {
        "miou_percent": miou,
        "difference": number(round(ours - miou, 2)),
        "same_images": len(result.images) == data.official,
    }


def difference(one: float | None, other: float | None) -> float | None:
    """What the other is better by, where both are numbers."""
    return None if one is None or other is None else other - one


@functools.cache
def versions() -> dict[str, Any]:
    packages = ("torch", "numpy", "numba", "pillow", "opencv-python-headless", "openvino")
    return {
        "naclip": naclip.__version__,
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
        "git_commit": _commit(),
    }


def _version(package: str) -> str | None:
    """None: not installed, as extras need not be."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Of the checkout that naclip runs from, with a mark if files of it were changed."""
    source = Path(naclip.__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(source), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        return git("rev-parse", "HEAD") + ("-changed" if git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def times(seconds: float) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"finished": now.isoformat(timespec="seconds"), "seconds": round(seconds, 3)}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """A line for each entry of the large lists, so that people and diffs can read it."""
    lines = []
    for key, value in content.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value and not isinstance(value[0], str):
            rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
            text = f"[\n  {rows}\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    with atomic(path) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """What `naclip evaluate --json` wrote."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"{path}: expected the JSON of naclip evaluate ({FORMAT!r})")
    return content
