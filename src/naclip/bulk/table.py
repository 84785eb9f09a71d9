"""A row an image, in Parquet: which classes cover how much of it, and its labels, run by run.

Workers write the rows of a chunk as a small file; shards are put together from those, in the order
of the items, when all are there. `runs` and `labels_of` are inverses.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from naclip.bulk.chunks import Chunk
from naclip.bulk.stores import Store, reason_of
from naclip.errors import MissingExtraError, OutputError

if TYPE_CHECKING:
    from naclip.results import Segmentation

SHARD = 10_000  # images, rounded to whole chunks
GROUP, PIECE = 32_000_000, 1_000_000  # bytes of rows written together, of a file copied at once
ROWS = ".naclip/rows"


def arrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("--table needs pyarrow: pip install 'naclip[cloud]'") from None
    return pa


def schema() -> Any:
    pa = arrow()
    return pa.schema(
        [
            ("path", pa.string()),
            ("height", pa.int32()),
            ("width", pa.int32()),
            ("classes", pa.list_(pa.string())),  # those that are there, in label order
            ("coverage", pa.list_(pa.float64())),  # of each of them
            ("rle_labels", pa.list_(pa.uint16())),  # row by row: this label,
            ("rle_lengths", pa.list_(pa.uint32())),  # so many pixels
            ("error", pa.string()),
        ]
    )


def runs(labels: NDArray[Any]) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    """(label of each run, its length), row by row."""
    flat = labels.ravel()
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    lengths = np.diff(np.append(starts, flat.size))
    return flat[starts].astype(np.uint16), lengths.astype(np.uint32)


def labels_of(row: Mapping[str, Any]) -> NDArray[np.uint16]:
    """(height, width) labels of a row of the table."""
    labels = np.asarray(row["rle_labels"], np.uint16)
    return np.repeat(labels, row["rle_lengths"]).reshape(row["height"], row["width"])


def readable(name: str) -> str:
    """A file's name need not be UTF-8, a table's text must: such bytes stand as \\xe9."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def rows_name(chunk: int) -> str:
    return f"{ROWS}/{chunk // 1000:05d}/{chunk:08d}.arrow"


def rows(
    chunk: Chunk,
    results: Mapping[int, Segmentation],
    failed: Mapping[int, str],
    classes: Sequence[str],
) -> bytes:
    pa = arrow()
    made = []
    for at, item in enumerate(chunk.items):
        row: dict[str, Any] = {"path": readable(item.name)}
        row["error"] = readable(failed[at]) if at in failed else None
        if at in results:
            labels = results[at].labels
            counts = np.bincount(labels.ravel(), minlength=len(classes))
            there = np.flatnonzero(counts).tolist()
            run_labels, lengths = runs(labels)
            row |= {"height": labels.shape[0], "width": labels.shape[1]}
            row |= {"classes": [classes[label] for label in there]}
            row |= {"coverage": (counts[there] / labels.size).tolist()}
            row |= {"rle_labels": run_labels.tolist(), "rle_lengths": lengths.tolist()}
        made.append(row)
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, schema()) as file:
        file.write_table(pa.Table.from_pylist(made, schema=schema()))
    return buffer.getvalue()


def write_shards(
    store: Store, chunks: int, chunk_size: int, classes: Sequence[str], tell: Callable[[str], None]
) -> Iterator[str]:
    """table/part-00000.parquet...: the same bytes whenever and wherever they are made."""
    per_shard = max(1, SHARD // chunk_size)
    for shard, first in enumerate(range(0, chunks, per_shard)):
        name = f"table/part-{shard:05d}.parquet"
        tell(name)
        numbers = range(first, min(first + per_shard, chunks))
        store.write_pieces(name, _shard(store, numbers, classes))
        yield name


def _shard(store: Store, numbers: Sequence[int], classes: Sequence[str]) -> Iterator[bytes]:
    """Parquet by way of a file on this machine: labels of large photos are megabytes each."""
    pa = arrow()
    meta = {b"naclip.classes": "\n".join(classes).encode()}
    with tempfile.NamedTemporaryFile(suffix=".parquet") as spool:
        try:
            described = schema().with_metadata(meta)
            with pa.parquet.ParquetWriter(spool.name, described, compression="zstd") as writer:
                for group in _groups(_rows_of(store, number) for number in numbers):
                    joined = pa.concat_tables(group).combine_chunks()
                    writer.write_table(joined.replace_schema_metadata(meta))
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else reason_of(error)  # not Arrow's
            raise OutputError(f"{spool.name}: cannot be written ({reason})") from None
        while piece := spool.read(PIECE):
            yield piece


def _groups(parts: Iterable[Any]) -> Iterator[list[Any]]:
    group: list[Any] = []
    size = 0
    for part in parts:
        group.append(part)
        size += part.nbytes
        if size >= GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _rows_of(store: Store, chunk: int) -> Any:
    data = store.read(rows_name(chunk))
    with arrow().ipc.open_stream(data or b"") as file:
        return file.read_all()
