"""A real Ray cluster of several nodes on this machine; nodes and actors die under the work."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from PIL import Image

import naclip
from naclip.bulk.cluster import RayCluster, connected
from naclip.bulk.worker import ModelChoice
from naclip.cli.ray_options import split_engine
from naclip.errors import CheckpointError, FailureError, OutputError, SettingsError
from naclip.evaluate.evaluation import open_data
from naclip.evaluate.jobs import Job
from naclip.evaluate.metric import total
from naclip.evaluate.run import Options
from naclip.evaluate.run import run as evaluate
from naclip.evaluate.spread import Spread

from .jobs import actor_processes, batch, command, contents, draw, environment

CHUNK: dict[str, Any] = {"chunk": 2, "table": True}
IMAGES = 120


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("in"), IMAGES)


@pytest.fixture(scope="module")
def clean(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("clean")
    batch(source, output, **CHUNK)
    return output


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that does no work, and two nodes for one actor each."""
    from ray.cluster_utils import Cluster

    started = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": 100_000_000},
    )
    for _ in range(2):
        started.add_node(num_cpus=1, object_store_memory=100_000_000)
    ray.init(address=started.address, log_to_driver=False)
    yield started
    ray.shutdown()
    started.shutdown()


class Progress:
    """Does something when so many images are done."""

    def __init__(self, at: int, action: Any) -> None:
        self.at, self.action, self.done = at, action, 0

    def begin(self, images: int, known: int) -> None:
        pass

    def step(self, images: int, failed: int) -> None:
        self.done += images
        if self.at <= self.done and self.action:
            action, self.action = self.action, None
            action()

    def note(self, text: str) -> None:
        pass


def test_an_actor_and_a_node_lost_in_the_middle(
    cluster: Any, source: Path, clean: Path, tmp_path: Path
) -> None:
    lost: list[str] = []
    spare = cluster.add_node(num_cpus=1, object_store_memory=100_000_000)

    def kill() -> None:
        victims = actor_processes()
        os.kill(random.Random(1).choice(victims), signal.SIGKILL)
        lost.append("actor")
        cluster.remove_node(spare, allow_graceful=False)
        lost.append("node")

    progress = Progress(20, kill)
    machines = RayCluster(actors=(3, 3))
    finished = batch(source, tmp_path, **CHUNK, machines=machines, progress=progress)
    assert lost == ["actor", "node"]
    assert (finished.images, dict(finished.failed)) == (IMAGES, {})
    assert progress.done == IMAGES, "repeated tasks double nothing"
    assert contents(tmp_path) == contents(clean)


def test_a_killed_driver_goes_on_locally_or_with_ray(
    cluster: Any, source: Path, clean: Path, tmp_path: Path
) -> None:
    ours = [*command(source, tmp_path, "--chunk", "2", "--table"), "--engine", "ray"]
    ours += ["--address", cluster.address, "--actors", "2,2"]
    process = subprocess.Popen(ours, env=environment(), stderr=subprocess.DEVNULL)
    record = tmp_path / ".naclip/record.jsonl"
    while not (record.exists() and record.read_bytes()):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    finished = batch(source, tmp_path, **CHUNK)
    assert 0 < finished.before < IMAGES
    assert contents(tmp_path) == contents(clean)


def test_errors_of_actors_come_back_as_they_are(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks cannot be written where a file has the folder's name."""
    source, output = draw(tmp_path / "in", 4), tmp_path / "out"
    (output / "masks").parent.mkdir()
    begin = naclip.bulk.run.manifest.write  # type: ignore[attr-defined]

    def blocked(store: Any, run: Any) -> None:
        begin(store, run)
        (output / "masks").write_text("not a folder")

    monkeypatch.setattr("naclip.bulk.run.manifest.write", blocked)
    with pytest.raises(OutputError, match=r"masks/even: cannot be made .* 0 of 4 images are done"):
        batch(source, output, machines=RayCluster(actors=(1, 1)))


def test_a_step_of_ones_own_pipeline(cluster: Any, source: Path, clean: Path) -> None:
    files = sorted(source.rglob("*.jpg"))[:6]
    rows = [{"image": path.read_bytes(), "at": at} for at, path in enumerate(files)]
    rows.append({"image": b"no image", "at": 6})
    data = ray.data.from_items(rows).map_batches(
        naclip.BatchSegmenter,
        fn_constructor_kwargs={
            "classes": ["car", "house=building", "tree"],
            "model": "tiny",
            "refine": False,
        },
        batch_size=2,
        concurrency=1,
    )
    found = sorted(data.take_all(), key=lambda row: row["at"])
    for row, path in zip(found, files, strict=False):
        mask = clean / "masks" / path.relative_to(source).with_suffix(".png")
        np.testing.assert_array_equal(row["mask"], np.asarray(Image.open(mask)))
        assert sum(row["coverage"]) == pytest.approx(1)
        assert row["error"] == ""
    assert "not an image" in found[6]["error"]
    assert found[6]["mask"].shape == (0, 0)


class Watch:
    """An evaluation's progress."""

    def begin(self, jobs: Any, images: int, known: int) -> None:
        self.known = known

    def step(self, entries: Any) -> None:
        pass


def test_confusion_sums_of_an_evaluation_equal_the_local_ones(cluster: Any, tmp_path: Path) -> None:
    model = ModelChoice("tiny", device="cpu")
    segmenter, settled = model.settled("cpu")
    data = open_data("synthetic", None, segmenter.model.defaults).limited(12)
    jobs = [
        Job(name, data, data.words, data.settings.updated(method=name, refine=False))
        for name in ("naclip", "clip")
    ]
    spread = Spread(RayCluster(actors=(2, 2)), settled)
    matrices = []
    for folder, options in (("here", Options()), ("there", Options(spread=spread))):
        finished = evaluate(segmenter, jobs, tmp_path / folder, options, Watch())
        classes = len(data.words.classes)
        found = {job.key: finished.results[job.key] for job in jobs}
        assert [len(one.images) for one in found.values()] == [12, 12]
        matrices.append([total(one.images.values(), classes) for one in found.values()])
    np.testing.assert_array_equal(matrices[0], matrices[1])
    known = Watch()
    evaluate(segmenter, jobs, tmp_path / "there", Options(spread=spread, resume=True), known)
    assert known.known == 12


def test_impossible_pools_and_clusters_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(SettingsError, match="actors is 3,2"):
        RayCluster(actors=(3, 2))
    with pytest.raises(SettingsError, match="no engine 'rai'; did you mean 'ray'"):
        split_engine("rai")
    assert split_engine("ray") == (True, "auto")
    assert split_engine("ray+openvino") == (True, "openvino")
    assert split_engine("compile") == (False, "compile")
    with (
        pytest.raises(FailureError, match=r"no Ray cluster at 127\.0\.0\.1:1 "),
        connected("127.0.0.1:1"),
    ):
        pass
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:10001")
    with pytest.raises(SettingsError, match="run the command on a machine of"), connected(None):
        pass


def test_machines_with_other_libraries_or_weights_refuse() -> None:
    _, settled = ModelChoice("tiny").settled(None)
    assert settled.open().model.name == "tiny"
    mixed = dict(settled.versions) | {"torch": "2.0.1", "pillow": "1.0"}
    with pytest.raises(FailureError, match=r"torch \S+ here, 2\.0\.1 there; pillow .* the same on"):
        replace(settled, versions=tuple(mixed.items())).open()
    there = dict(settled.versions)
    there["torch"] = there["torch"].partition("+")[0] + "+cu128"  # the same, built for GPUs
    assert replace(settled, versions=tuple(there.items())).open()
    with pytest.raises(CheckpointError, match="tiny has other weights here"):
        settled.open("0" * 64)
