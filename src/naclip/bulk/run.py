"""The job: words once, a record, machines, the table at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from naclip import vocabulary
from naclip.bulk import exports, inputs, local, manifest
from naclip.bulk import table as tables
from naclip.bulk.chunks import Chunk, Outcome, chunk_count, chunk_of
from naclip.bulk.exports import Exports
from naclip.bulk.inputs import Inputs
from naclip.bulk.lock import NAME as LOCK
from naclip.bulk.lock import locked
from naclip.bulk.progress import Silent
from naclip.bulk.record import Record
from naclip.bulk.stores import LocalStore, Store, is_url, open_store
from naclip.bulk.worker import ModelChoice, Outputs, Task, Worker
from naclip.clip.sources import DEFAULT_MODEL
from naclip.errors import OutputError, SettingsError, UsageError
from naclip.export.item import Classes
from naclip.export.options import EVERYTHING, Options
from naclip.pipeline import Segmenter
from naclip.settings import Device, Engine, Precision, Settings
from naclip.vocabulary import Vocabulary, Words

FAILURES = "failures.json"
OURS = ("masks", "overlays", "table", exports.FOLDER, ".naclip")  # folders of an output
FORGETTING = ".naclip/forgetting"  # is there while an earlier run is being deleted
WHOLE = ".naclip/whole"  # is there when what is about all images is written, and holds


class Machines(Protocol):
    """Chunks -> outcomes, in any order."""

    @property
    def device(self) -> Device | None: ...  # of models that are not in this process

    def __call__(
        self, task: Task, segmenter: Segmenter, chunks: Iterable[Chunk]
    ) -> Iterator[Outcome]: ...


class Progress(Protocol):
    def begin(self, images: int, known: int) -> None: ...
    def step(self, images: int, failed: int) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass(frozen=True)
class Job:
    """What is asked for: all that run.json says, and how to get there."""

    source: str
    output: str
    words: Vocabulary
    settings: Settings
    templates: tuple[str, ...]
    model: ModelChoice
    outputs: Outputs = Outputs()
    chunk: int = 8  # images that go through the model together
    retry_failed: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        if self.chunk < 1:
            raise SettingsError(f"chunk is {self.chunk}: use at least 1 image")
        if self.outputs.is_nothing:
            raise UsageError("nothing would be written: ask for masks, overlays, a table, a format")
        self.outputs.exports.check()
        if self.outputs.table:
            tables.arrow()


@dataclass(frozen=True)
class Finished:
    output: str
    images: int
    before: int  # of them known from earlier runs
    failed: Mapping[str, str] = field(default_factory=dict)  # name -> why


@dataclass(frozen=True)
class LocalMachine:
    readers: int = 2
    writers: int = 2
    device: Device | None = None

    def __call__(
        self, task: Task, segmenter: Segmenter, chunks: Iterable[Chunk]
    ) -> Iterator[Outcome]:
        return local.outcomes(Worker(task, segmenter), chunks, self.readers, self.writers)


def run(job: Job, machines: Machines, progress: Progress) -> Finished:
    segmenter, model = job.model.settled(machines.device)
    description = manifest.describe(
        segmenter, model, job.words, job.templates, job.settings, job.outputs, job.chunk
    )
    store = open_store(job.output)
    source = job.source if is_url(job.source) else str(Path(job.source).absolute())
    with locked(store) as check:
        if isinstance(store, LocalStore):
            store.sweep(OURS)
        if job.overwrite or store.read(FORGETTING) is not None:
            _forget(store)
        known = _items(store, source, description, progress)
        text = segmenter.words(job.words, job.templates).cpu().numpy()
        task = Task(
            job.words,
            text,
            job.settings,
            job.outputs,
            known.root,
            store,
            model,
            segmenter.model.fingerprint,
        )
        record = Record(store, chunk_count(len(known.items), job.chunk), job.chunk)
        with closing(record):
            return _finish(job, task, segmenter, machines, known, record, check, progress)


def _items(store: Store, source: str, description: Mapping[str, Any], progress: Progress) -> Inputs:
    """Those that the run began with; a run that has just begun writes them down."""
    before = manifest.read(store)
    described = {**description, "input": source}
    if before is not None:
        manifest.check_same(store, before, described)
        known = manifest.read_items(store)
        if known is not None:
            _note_changes(known, source, store, progress)
            return known
    elif (foreign := _foreign(store)) is not None:
        raise UsageError(
            f"{store.root} holds other files ({foreign}): name a new or empty folder for the output"
        )
    found = inputs.find(source, without=store.root)
    manifest.write_items(store, found)
    manifest.write(store, manifest.with_inputs(description, source, found))
    return found


def _foreign(store: Store) -> str | None:
    return next((name for name in store.names("") if not name.startswith(".naclip/")), None)


def _forget(store: Store) -> None:
    """Everything of an earlier run, the lock apart; nothing where there was none.

    Whoever is killed here leaves word, so that nobody takes the remains for a run to go on with.
    """
    if store.read(FORGETTING) is None:
        if manifest.read(store) is None:
            return
        store.write(FORGETTING, b"")
        store.settle([FORGETTING])
    for folder in OURS[:-1]:
        store.delete_tree(folder)
    for name in store.names(".naclip"):
        if name not in (LOCK, FORGETTING):
            store.delete(name)
    store.delete(FAILURES)
    store.delete(manifest.NAME)
    store.settle([FAILURES])
    store.delete(FORGETTING)


def _note_changes(known: Inputs, source: str, store: Store, progress: Progress) -> None:
    now = {item.name for item in inputs.find(source, without=store.root).items}
    then = {item.name for item in known.items}
    if now - then:
        progress.note(
            f"{len(now - then)} images are new since the run began ({min(now - then)}, ...) and "
            "are left out: segment them into another output"
        )


def _finish(
    job: Job,
    task: Task,
    segmenter: Segmenter,
    machines: Machines,
    known: Inputs,
    record: Record,
    check: Callable[[], None],
    progress: Progress,
) -> Finished:
    todo = list(record.todo(job.retry_failed))
    before = record.images
    again = sum(min(job.chunk, len(known.items) - n * job.chunk) for n in todo)
    progress.begin(len(known.items), len(known.items) - again)
    chunks = (chunk_of(known.items, job.chunk, number) for number in todo)
    try:
        if todo:
            task.store.delete(WHOLE)
            task.store.settle([WHOLE])
            for outcome in machines(task, segmenter, chunks):
                check()
                record.add(outcome)
                progress.step(outcome.count, record.failure_count)
        if machines.device is not None and isinstance(task.store, LocalStore):
            task.store.sweep(OURS)  # what killed actors were writing; their chunks are done
        failed = {known.items[index].name: reason for index, reason in record.failures()}
        _write_results(job, task.store, known, failed, progress)
    except OutputError as error:
        raise OutputError(
            f"{error}: make room or get permission, and run the same command: "
            f"{record.images} of {len(known.items)} images are done and kept"
        ) from None
    return Finished(job.output, len(known.items), before, failed)


def _write_results(
    job: Job,
    store: Store,
    known: Inputs,
    failed: Mapping[str, str],
    progress: Progress,
) -> None:
    """Last: what is about the run as a whole."""
    count = chunk_count(len(known.items), job.chunk)
    if store.read(WHOLE) is None:
        classes, written = Classes.of(job.words), []
        if job.outputs.table:
            names = tables.write_shards(store, count, job.chunk, job.words.classes, progress.note)
            written += list(names)
        wanted = job.outputs.exports
        written += list(exports.write_whole(store, wanted, count, classes, progress.note))
        store.settle(written)
        store.write(WHOLE, b"")
    rows = [{"path": name, "error": reason} for name, reason in failed.items()]
    store.write(FAILURES, json.dumps(rows, indent=2).encode() + b"\n")
    store.settle([FAILURES, WHOLE])


def batch(
    source: str | Path,
    output: str | Path,
    classes: Words,
    *,
    background: bool | Sequence[str] | None = None,
    settings: Settings | None = None,
    templates: Sequence[str] | None = None,
    model: str | Path = DEFAULT_MODEL,
    device: Device = "auto",
    precision: Precision = "auto",
    engine: Engine = "auto",
    activation: str | None = None,
    calibration: Sequence[str | Path] = (),
    masks: bool = True,
    overlays: bool = False,
    table: bool = False,
    formats: Sequence[str] = (),
    export: Options = EVERYTHING,
    chunk: int = 8,
    retry_failed: bool = False,
    overwrite: bool = False,
    machines: Machines | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Finished:
    """Segment all images of a folder, glob, list, tar or URL into a folder or URL; resumable.

    engine      what runs the frozen blocks: naclip.engines
    calibration images, or folders of them, that int8 takes its ranges from
    formats     of other tools (naclip formats), in exports/FORMAT; export: parts, outlines...
    machines    LocalMachine(readers, writers) by default, or naclip.RayCluster(...)
    options     any field of Settings: method, sigma, window, refine, threshold, ...
    """
    from naclip.clip.sources import default_settings

    chosen = (settings or default_settings(str(model))).updated(**options)
    job = Job(
        str(source),
        str(output),
        vocabulary.complete(classes, background, chosen.decoding.threshold),
        chosen,
        vocabulary.templates() if templates is None else vocabulary.checked_templates(templates),
        ModelChoice(str(model), device, precision, activation, engine, tuple(calibration)),
        Outputs(masks, overlays, table, Exports(tuple(formats), export)),
        chunk,
        retry_failed,
        overwrite,
    )
    return run(job, machines or LocalMachine(), progress or Silent())
