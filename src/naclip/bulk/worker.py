"""A chunk of images -> their outputs: what threads on one machine and actors on many alike do.

read      bytes -> pictures                 (threads)
segment   pictures -> segmentations         (where the model is)
write     segmentations -> files            (threads)
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from naclip import calibration as calibrating
from naclip import engines, images
from naclip.bulk import exports, inputs, table
from naclip.bulk.chunks import Chunk, Outcome
from naclip.bulk.exports import Exports
from naclip.bulk.inputs import Item
from naclip.bulk.many import Many
from naclip.bulk.stores import Store, is_text
from naclip.bulk.versions import check_same, versions
from naclip.device import choose_precision
from naclip.errors import CheckpointError, DataError, ImageError, SettingsError
from naclip.export.item import Classes
from naclip.images import Picture
from naclip.pipeline import Segmenter, load
from naclip.results import Segmentation
from naclip.settings import Device, Engine, Precision, Settings
from naclip.vocabulary import Vocabulary

OVERLAY_QUALITY = 92
JPEG_SIDE = 65_500  # pixels, of the library that Pillow writes JPEG with


@dataclass(frozen=True)
class Outputs:
    masks: bool = True
    overlays: bool = False
    table: bool = False
    exports: Exports = Exports()

    @property
    def is_nothing(self) -> bool:
        return not (self.masks or self.overlays or self.table or self.exports.formats)


@dataclass(frozen=True)
class ModelChoice:
    name: str
    device: Device = "auto"
    precision: Precision = "auto"
    activation: str | None = None
    engine: Engine = "auto"
    calibration: tuple[str | Path, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()  # of a settled choice: libraries it was made with

    def open(self, fingerprint: str = "") -> Segmenter:
        """The model, with the very libraries and weights that the job began with."""
        check_same(dict(self.versions))
        segmenter = load(
            self.name,
            device=self.device,
            precision=self.precision,
            engine=self.engine,
            activation=self.activation,
            calibration=self.calibration,
        )
        if fingerprint and segmenter.model.fingerprint != fingerprint:
            raise CheckpointError(
                f"{self.name} has other weights here than where the job was started: give every "
                "machine the same file"
            )
        return segmenter

    def ran_on(self) -> dict[str, str]:
        """As Segmenter.ran_on, of a settled choice."""
        return {
            "precision": self.precision,
            "device": self.device,
            "engine": self.engine,
            "calibration": calibrating.digest(calibrating.pictures(self.calibration)),
        }

    def settled(self, elsewhere: Device | None) -> tuple[Segmenter, ModelChoice]:
        """The model for this process, and how workers open it: with nothing left to chance.

        elsewhere   what workers run on where that is not this process, which only encodes words
        """
        if elsewhere is None:
            segmenter = self.open()
            device, precision = segmenter.device, segmenter.precision
            engine = segmenter.engine.name
        else:
            if self.device not in ("auto", elsewhere):
                raise SettingsError(
                    f"device {self.device} is asked for, but the machines' models are on "
                    f"{elsewhere}: give actors a GPU, or leave the device out"
                )
            here = replace(self, device="cpu", precision="auto", engine="torch", calibration=())
            segmenter = here.open()
            device = torch.device(elsewhere)
            precision = choose_precision(self.precision, device)
            calibrating.check(precision, self.calibration)
            engine = engines.choose(self.engine, precision, device, segmenter.vision)
        chosen: dict[str, Any] = {"device": device.type, "precision": precision, "engine": engine}
        return segmenter, replace(self, **chosen, versions=tuple(versions().items()))


@dataclass(frozen=True)
class Task:
    """Everything that a worker needs besides chunks; it travels to other machines."""

    words: Vocabulary
    text: NDArray[np.float32]  # (N, E) vectors of the words: encoded once for all workers
    settings: Settings
    outputs: Outputs
    root: str  # of the input
    store: Store
    model: ModelChoice
    weights: str  # their sha256


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
        text = torch.from_numpy(task.text.copy())
        self.many = Many(segmenter, task.words, text, task.settings)

    def __call__(self, chunk: Chunk) -> Outcome:
        return self.write(self.segment(self.read(chunk)))

    def read(self, chunk: Chunk) -> Read:
        pictures: dict[int, Picture] = {}
        failed: dict[int, str] = {}
        for position, item in enumerate(chunk.items):
            try:
                self._check_name(item)
                pictures[position] = load_picture(item)
            except ImageError as error:
                failed[position] = str(error)
        if failed and inputs.is_lost(self.task.root):
            raise DataError(
                f"{self.task.root}: the input is gone or cannot be read any more: bring it back "
                "and run the same command; what is done is kept"
            )
        return Read(chunk, pictures, failed)

    def _check_name(self, item: Item) -> None:
        """Members of tars and objects of stores may be called what no file can be."""
        task = self.task
        if task.outputs.exports.formats and not is_text(item.name):
            raise ImageError(f"{item.name}: its name is not UTF-8, which --format needs: rename it")
        exported = exports.names_of(task.outputs.exports, item, Classes.of(task.words))
        for name in (*(name for name, _ in wanted(task.outputs, item, None)), *exported):
            if (reason := task.store.refusal(name)) is not None:
                raise ImageError(f"{item.name}: {reason}")

    def segment(self, read: Read) -> Segmented:
        results, failed = self.many.segment(read.pictures)
        return Segmented(read.chunk, results, {**read.failed, **failed})

    def write(self, done: Segmented) -> Outcome:
        task = self.task
        asked, classes = task.outputs.exports, Classes.of(task.words)
        made, unfit = exports.make(asked, done.chunk, done.results, classes)
        files, too_large = self._encoded(done, unfit)
        unfit |= too_large
        results = {at: result for at, result in done.results.items() if at not in unfit}
        made = {at: one for at, one in made.items() if at not in unfit}
        failed = dict(sorted({**done.failed, **unfit}.items()))
        for name, contents in files.items():
            if contents is None:  # of an earlier try, with a file that was good then
                task.store.delete(name)
            else:
                task.store.write(name, contents)
        written = list(files)
        if task.outputs.table:
            rows = table.rows(done.chunk, results, failed, task.words.classes)
            written.append(table.rows_name(done.chunk.number))
            task.store.write(written[-1], rows)
        written += exports.write(task.store, asked, done.chunk, made, classes)
        task.store.settle(written)
        return Outcome(done.chunk.number, len(done.chunk.items), failed)

    def _encoded(
        self, done: Segmented, unfit: Mapping[int, str]
    ) -> tuple[dict[str, bytes | None], dict[int, str]]:
        """Contents of files by name, None of those that must not be; and what no file can hold."""
        files: dict[str, bytes | None] = {}
        failed: dict[int, str] = {}
        for at, item in enumerate(done.chunk.items):
            asked = wanted(self.task.outputs, item, None if at in unfit else done.results.get(at))
            try:
                files |= {name: picture_bytes(name, result) for name, result in asked}
            except ImageError as error:
                failed[at] = f"{item.name}: {error}"
                files |= dict.fromkeys(name for name, _ in wanted(self.task.outputs, item, None))
        return files, failed


def load_picture(item: Item) -> Picture:
    data = inputs.read(item)
    try:
        return replace(images.load(data), name=item.name)
    except ImageError as error:
        raise ImageError(str(error).replace("image bytes", item.name, 1)) from None


def wanted(
    outputs: Outputs, item: Item, result: Segmentation | None
) -> Iterator[tuple[str, Segmentation | None]]:
    """The files of an image."""
    if outputs.masks:
        yield f"masks/{item.target}.png", result
    if outputs.overlays:
        yield f"overlays/{item.target}.jpg", result


def picture_bytes(name: str, result: Segmentation | None) -> bytes | None:
    if result is None:
        return None
    buffer = io.BytesIO()
    if name.endswith(".png"):
        result.write_mask(buffer)
        return buffer.getvalue()
    if max(result.labels.shape) > JPEG_SIDE:
        height, width = result.labels.shape
        raise ImageError(f"its overlay would be {width}x{height}: JPEG takes {JPEG_SIDE} a side")
    Image.fromarray(result.overlay()).save(buffer, format="JPEG", quality=OVERLAY_QUALITY)
    return buffer.getvalue()
