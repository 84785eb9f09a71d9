"""What is known of every image so far, on disk before the next one begins.

A file of lines: a header that says what is computed, then one JSON object an image. A line is
written whole and synced; whatever a crash leaves behind its last newline is cut off on resuming.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from naclip.errors import DataError, OutputError, UsageError
from naclip.evaluate.metric import Sparse


def made_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror})") from None


def fingerprint(description: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


@dataclass
class Line:
    """One image: a sparse confusion matrix for each job, or why there is none."""

    image: str
    jobs: Mapping[str, Sparse] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0

    def encoded(self) -> bytes:
        jobs = {key: entries.ravel().tolist() for key, entries in self.jobs.items()}
        fields: dict[str, Any] = {"image": self.image, "seconds": round(self.seconds, 4)}
        fields |= {"error": self.error} if self.error else {"jobs": jobs}
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    @staticmethod
    def decoded(text: bytes) -> Line:
        fields = json.loads(text)
        jobs = {
            key: np.array(flat, np.int32).reshape(-1, 3)
            for key, flat in fields.get("jobs", {}).items()
        }
        return Line(fields["image"], jobs, fields.get("error", ""), fields["seconds"])


class Record:
    """The lines of a run: those of before, if it is resumed, and those that are added."""

    def __init__(self, path: Path, description: Mapping[str, Any], resume: bool) -> None:
        self.path = path
        self.lines: dict[str, Line] = {}
        made_folder(path.parent)
        header = json.dumps({"naclip": "record", "of": fingerprint(description)}).encode() + b"\n"
        kept = 0
        if path.is_file():
            kept = self._read(header, resume)
        self._file = self._opened("r+b" if kept else "wb")
        self._file.truncate(kept)
        self._file.seek(kept)
        if not kept:
            self._write(header)

    def _opened(self, mode: str) -> BinaryIO:
        try:
            return self.path.open(mode)  # type: ignore[return-value]
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written ({error.strerror})") from None

    def _read(self, header: bytes, resume: bool) -> int:
        """Take over the lines of an earlier run; how many bytes of them are sound."""
        first, *rest = self.path.read_bytes().splitlines(keepends=True) or [b""]
        if not rest:
            return 0  # died before its first image: nothing is lost by beginning anew
        if not resume:
            raise UsageError(
                f"{self.path} keeps {len(rest)} images of an interrupted run: add --resume to go "
                "on with it, or delete it to begin anew"
            )
        if first != header:
            raise UsageError(
                f"{self.path} keeps another run: data, model, words or settings differ; run with "
                "the same, or delete it to begin anew"
            )
        kept = len(first)
        for number, text in enumerate(rest, start=2):
            if not text.endswith(b"\n"):
                break  # cut short by a crash
            try:
                line = Line.decoded(text)
            except (ValueError, KeyError, TypeError):
                raise DataError(f"{self.path}: line {number} is damaged: delete it") from None
            self.lines[line.image] = line
            kept += len(text)
        return kept

    def add(self, line: Line) -> None:
        self.lines[line.image] = line
        self._write(line.encoded())

    def _write(self, text: bytes) -> None:
        try:
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written ({error.strerror})") from None

    def close(self) -> None:
        self._file.close()

    def delete(self) -> None:
        """When what it was kept for is written."""
        self.close()
        self.path.unlink(missing_ok=True)
