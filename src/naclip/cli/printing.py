"""Printing to whatever standard output is: a terminal, a pipe, in any encoding."""

from __future__ import annotations

import io
import json
import sys
from typing import Any


def escape_what_cannot_be_printed() -> None:
    r"""A name that the encoding lacks is printed as \u732b; by default Python gives up on it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any, indent: int | None = None) -> None:
    """As it is read in UTF-8; in another encoding with JSON's own escapes."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(value, ensure_ascii=not is_utf8, indent=indent, allow_nan=False))
