"""The paths in a list of images: a text, a CSV file, a Parquet table."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from naclip.bulk.stores import reason_of
from naclip.errors import DataError, MissingExtraError

COLUMNS = ("path", "image", "file", "filename", "url")


def paths(data: bytes, name: str) -> list[str]:
    """In their order; a row without a path is an error, for its image would be missed silently."""
    if name.lower().endswith(".parquet"):
        return _checked(_parquet(data, name), name)
    text = data.decode("utf-8-sig")
    if name.lower().endswith(".csv"):
        return _checked(_csv(text, name), name)
    return [line for line in map(str.strip, text.split("\n")) if line and line[0] != "#"]


def _csv(text: str, name: str) -> list[str]:
    rows = [row for row in csv.reader(io.StringIO(text)) if any(row)]
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    column = next((header.index(title) for title in COLUMNS if title in header), None)
    if column is not None:
        return [row[column].strip() if len(row) > column else "" for row in rows[1:]]
    if any(len(row) > 1 for row in rows):
        raise _no_column(name)
    return [row[0].strip() for row in rows]


def _parquet(data: bytes, name: str) -> list[Any]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(
            f"{name}: Parquet needs pyarrow: pip install 'naclip[cloud]'"
        ) from None
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        column = next(
            (title for title in file.schema_arrow.names if title.lower() in COLUMNS), None
        )
        if column is None:
            raise _no_column(name)
        return list(file.read([column]).column(0).to_pylist())
    except ValueError as error:  # of Arrow
        raise DataError(f"{name}: cannot be read as Parquet ({reason_of(error)})") from None


def _checked(found: Sequence[Any], name: str) -> list[str]:
    for number, path in enumerate(found, start=1):
        if not path:
            raise DataError(f"{name}: row {number} of {len(found)} has no path: fill it or drop it")
    return [str(path) for path in found]


def _no_column(name: str) -> DataError:
    return DataError(f"{name}: no column of paths: call it {', '.join(COLUMNS[:-1])} or url")
