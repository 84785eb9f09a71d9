"""What is remembered of images: pictures, their features, traces for the attention view.

Least recently used goes first; bounded in bytes. Keys hold everything that changes the value, the
image by the hash of its content. Used from the worker's thread and the event loop's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from torch import Tensor

from naclip.clip.vision import Trace
from naclip.images import Picture
from naclip.pipeline import Encoded


class Memory:
    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self.hits: dict[str, int] = {}  # by kind: the first part of a key
        self.misses: dict[str, int] = {}
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[Hashable, ...], tuple[Any, int]] = OrderedDict()

    def get(self, key: tuple[Hashable, ...]) -> Any | None:
        kind = str(key[0])
        with self._lock:
            entry = self._entries.get(key)
            counts = self.misses if entry is None else self.hits
            counts[kind] = counts.get(kind, 0) + 1
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: tuple[Hashable, ...], value: Picture | Encoded | Trace) -> None:
        size = size_of(value)
        with self._lock:
            self.bytes -= self._entries.pop(key, (None, 0))[1]
            self._entries[key] = (value, size)
            self.bytes += size
            while self.bytes > self.max_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self.bytes -= freed


def size_of(value: Picture | Encoded | Trace) -> int:
    if isinstance(value, Picture):
        return int(value.rgb.nbytes)
    if isinstance(value, Encoded):
        image = value.image if value.image is not None else value.patches[:0]
        return _bytes(value.patches, value.pixels, image)
    return _bytes(*value.inputs)


def _bytes(*tensors: Tensor) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
