"""A chunk of images -> their outputs: what threads on one machine and actors on many alike do.

read      bytes -> pictures                 (threads)
segment   pictures -> segmentations         (where the model is)
write     segmentations -> files            (threads)
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from naclip import images
from naclip.bulk import inputs, table
from naclip.bulk.chunks import Chunk, Outcome
from naclip.bulk.inputs import Item
from naclip.bulk.stores import Store
from naclip.device import memory_errors
from naclip.errors import CheckpointError, DataError, FailureError, ImageError
from naclip.images import Picture
from naclip.pipeline import Encoded, Segmenter, load
from naclip.results import Segmentation
from naclip.settings import Device, Precision, Settings, Windowing
from naclip.vocabulary import Vocabulary

OVERLAY_QUALITY = 92


@dataclass(frozen=True)
class Outputs:
    masks: bool = True
    overlays: bool = False
    table: bool = False


@dataclass(frozen=True)
class ModelChoice:
    name: str
    device: Device = "auto"
    precision: Precision = "auto"
    activation: str | None = None

    def open(self, fingerprint: str = "") -> Segmenter:
        """The model, with the very weights that the job began with."""
        segmenter = load(
            self.name, device=self.device, precision=self.precision, activation=self.activation
        )
        if fingerprint and segmenter.model.fingerprint != fingerprint:
            raise CheckpointError(
                f"{self.name} has other weights here than where the job was started: give every "
                "machine the same file"
            )
        return segmenter


@dataclass(frozen=True)
class Task:
    """Everything that a worker needs besides chunks; it travels to other machines."""

    words: Vocabulary
    text: NDArray[np.float32]  # (N, E) vectors of the words: encoded once for all workers
    settings: Settings
    outputs: Outputs
    root: str  # of the input
    store: Store


@dataclass(frozen=True)
class Read:
    chunk: Chunk
    pictures: Mapping[int, Picture]  # by position
    failed: Mapping[int, str]


@dataclass(frozen=True)
class Segmented:
    chunk: Chunk
    results: Mapping[int, Segmentation]
    failed: Mapping[int, str]


class Worker:
    def __init__(self, task: Task, segmenter: Segmenter) -> None:
        self.task = task
        self.segmenter = segmenter
        self.text = torch.from_numpy(task.text.copy()).to(segmenter.device)

    def __call__(self, chunk: Chunk) -> Outcome:
        return self.write(self.segment(self.read(chunk)))

    def read(self, chunk: Chunk) -> Read:
        pictures: dict[int, Picture] = {}
        failed: dict[int, str] = {}
        for position, item in enumerate(chunk.items):
            try:
                pictures[position] = load_picture(item)
            except ImageError as error:
                failed[position] = str(error)
        if failed and inputs.is_lost(self.task.root):
            raise DataError(
                f"{self.task.root}: the input is gone or cannot be read any more: bring it back "
                "and run the same command; what is done is kept"
            )
        return Read(chunk, pictures, failed)

    @torch.inference_mode()
    def segment(self, read: Read) -> Segmented:
        failed = dict(read.failed)
        results: dict[int, Segmentation] = {}
        windowing = self.task.settings.windowing
        for group in same_windows(read.pictures, windowing):
            encoded = self._encode({at: read.pictures[at] for at in group}, failed)
            for at, patches in encoded.items():
                try:
                    results[at] = self._name_pixels(read.pictures[at], patches)
                except FailureError as error:
                    failed[at] = str(error)
        return Segmented(read.chunk, results, failed)

    def _encode(
        self, pictures: Mapping[int, Picture], failed: dict[int, str]
    ) -> dict[int, Encoded]:
        """All at once; one by one where that fails, to find the image that it is due to."""
        try:
            return self._encode_together(pictures)
        except FailureError as error:
            if len(pictures) == 1:
                failed |= dict.fromkeys(pictures, str(error))
                return {}
        encoded: dict[int, Encoded] = {}
        for at, picture in pictures.items():
            encoded |= self._encode({at: picture}, failed)
        return encoded

    def _encode_together(self, pictures: Mapping[int, Picture]) -> dict[int, Encoded]:
        settings = self.task.settings
        with memory_errors(next(iter(pictures.values())).name):
            encoded = self.segmenter.encode_many(
                list(pictures.values()), settings.windowing, [settings.method]
            )
        return {at: one[0] for at, one in zip(pictures, encoded, strict=True)}

    def _name_pixels(self, picture: Picture, encoded: Encoded) -> Segmentation:
        with memory_errors(picture.name):
            return self.segmenter.name_pixels(
                picture, encoded, self.task.words, self.task.settings, text=self.text
            )

    def write(self, done: Segmented) -> Outcome:
        task = self.task
        for at, item in enumerate(done.chunk.items):
            for name, result in wanted(task.outputs, item, done.results.get(at)):
                if result is None:  # of an earlier try, with a file that was good then
                    task.store.delete(name)
                else:
                    task.store.write(name, picture_bytes(name, result))
        if task.outputs.table:
            rows = table.rows(done.chunk, done.results, done.failed, task.words.classes)
            task.store.write(table.rows_name(done.chunk.number), rows)
        failed = dict(sorted(done.failed.items()))
        return Outcome(done.chunk.number, len(done.chunk.items), failed)


def load_picture(item: Item) -> Picture:
    data = inputs.read(item)
    try:
        return replace(images.load(data), name=item.name)
    except ImageError as error:
        raise ImageError(str(error).replace("image bytes", item.name, 1)) from None


def same_windows(pictures: Mapping[int, Picture], windowing: Windowing) -> list[list[int]]:
    """Positions of pictures whose windows have one size: those may be encoded together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for at, picture in pictures.items():
        height, width = images.resized_size(*picture.size, windowing)
        if not windowing.whole:
            height, width = min(height, windowing.window), min(width, windowing.window)
        groups.setdefault((height, width), []).append(at)
    return list(groups.values())


def wanted(
    outputs: Outputs, item: Item, result: Segmentation | None
) -> Iterator[tuple[str, Segmentation | None]]:
    """The files of an image."""
    if outputs.masks:
        yield f"masks/{item.target}.png", result
    if outputs.overlays:
        yield f"overlays/{item.target}.jpg", result


def picture_bytes(name: str, result: Segmentation) -> bytes:
    buffer = io.BytesIO()
    if name.endswith(".png"):
        result.write_mask(buffer)
    else:
        Image.fromarray(result.overlay()).save(buffer, format="JPEG", quality=OVERLAY_QUALITY)
    return buffer.getvalue()


def names_of(outputs: Outputs) -> Sequence[str]:
    return [name for name in ("masks", "overlays", "table") if getattr(outputs, name)]
