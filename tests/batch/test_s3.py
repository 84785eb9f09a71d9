"""An S3-compatible store, moto's server, as input and output."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from moto import server as moto

from naclip.bulk.lock import locked
from naclip.bulk.stores import open_store
from naclip.errors import DataError, NaclipError, UsageError

from .jobs import batch, contents, draw


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = moto.ThreadedMotoServer(port=port)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3").mkdir("pictures")
        yield "s3://pictures"
    server.stop()


@pytest.fixture
def s3() -> fsspec.AbstractFileSystem:
    fs = fsspec.filesystem("s3")
    fs.invalidate_cache()
    return fs


def test_s3_in_and_out_equals_a_folder(
    bucket: str, s3: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    source = draw(tmp_path / "in", 10)
    s3.put(str(source), f"{bucket}/in", recursive=True)
    everything = {"overlays": True, "table": True, "chunk": 2}
    assert batch(f"{bucket}/in", f"{bucket}/out", **everything).images == 10
    batch(source, tmp_path / "clean", **everything)
    s3.invalidate_cache()
    s3.get(f"{bucket}/out/", str(tmp_path / "got"), recursive=True)
    theirs, ours = contents(tmp_path / "clean"), contents(tmp_path / "got")
    assert {**ours, "run.json": ""} == {**theirs, "run.json": ""}  # which names the input
    again = batch(f"{bucket}/in", f"{bucket}/out", **everything)
    assert again.before == 10
    with pytest.raises(UsageError, match="chunk: 2 then, 3 now"):
        batch(f"{bucket}/in", f"{bucket}/out", **(everything | {"chunk": 3}))


def test_a_run_into_s3_goes_on_where_it_was(
    bucket: str, s3: fsspec.AbstractFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill: the lines not yet in the store are lost, and so is the lock's owner."""
    monkeypatch.setattr("naclip.bulk.record.LINES", 2)
    source, output = draw(tmp_path / "in", 8), f"{bucket}/killed"

    class KilledError(Exception):
        pass

    class Killer:
        def begin(self, images: int, known: int) -> None:
            self.steps = 0

        def step(self, images: int, failed: int) -> None:
            self.steps += 1
            if self.steps == 3:
                monkeypatch.setattr("naclip.bulk.record.ObjectLog.close", lambda self: None)
                raise KilledError

        def note(self, text: str) -> None:
            pass

    with pytest.raises(KilledError):
        batch(source, output, chunk=2, progress=Killer())
    monkeypatch.undo()
    assert batch(source, output, chunk=2).before == 4
    batch(source, tmp_path / "clean", chunk=2)
    s3.invalidate_cache()
    s3.get(f"{output}/", str(tmp_path / "got"), recursive=True)
    assert contents(tmp_path / "got") == contents(tmp_path / "clean")


def test_a_list_in_s3_and_a_missing_object(
    bucket: str, s3: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    source = draw(tmp_path / "in", 2)
    s3.put(str(source), f"{bucket}/few", recursive=True)
    text = f"{bucket}/few/even/000.jpg\nfew/odd/deep/001.jpg\nfew/even/gone.jpg\n"
    s3.pipe_file(f"{bucket}/list.txt", text.encode())
    finished = batch(f"{bucket}/list.txt", tmp_path / "out")
    assert finished.failed == {"few/even/gone.jpg": "few/even/gone.jpg: no such file"}
    assert (tmp_path / "out/masks/few/odd/deep/001.png").exists()


def test_two_runs_into_one_place_are_detected(bucket: str) -> None:
    store = open_store(f"{bucket}/locked")
    with (
        locked(store),
        pytest.raises(UsageError, match="another process is at work on it"),
        locked(store),
    ):
        pass
    claim = {"token": "x", "holder": "process 1 on elsewhere", "host": "elsewhere", "pid": 1}
    store.write(".naclip/lock", json.dumps({**claim, "at": time.time()}).encode())
    with pytest.raises(UsageError, match="90 s after its last sign of life"), locked(store):
        pass
    store.write(".naclip/lock", json.dumps({**claim, "at": time.time() - 100}).encode())
    with locked(store):
        pass


def test_no_bucket_is_one_line(bucket: str, tmp_path: Path) -> None:
    source = draw(tmp_path / "in", 2)
    with pytest.raises(NaclipError, match="s3://no-such-bucket-here"):
        batch(source, "s3://no-such-bucket-here/out")


def test_a_claim_that_was_taken_over_is_noticed(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a machine that slept for longer than its claim lasts."""
    monkeypatch.setattr("naclip.bulk.lock.BEAT", 0.05)
    source, output = draw(tmp_path / "in", 12), f"{bucket}/taken"
    claim = {"token": "x", "holder": "process 7 on elsewhere", "host": "elsewhere", "pid": 7}
    data = json.dumps({**claim, "at": time.time() + 3600}).encode()

    class Taker:
        def begin(self, images: int, known: int) -> None:
            pass

        def step(self, images: int, failed: int) -> None:
            open_store(output).write(".naclip/lock", data)
            time.sleep(0.5)

        def note(self, text: str) -> None:
            pass

    with pytest.raises(UsageError, match=r"at work on it .process 7 on elsew"):
        batch(source, output, chunk=2, progress=Taker())
    assert open_store(output).read(".naclip/lock") == data, "it is no longer ours to delete"


def test_a_bucket_that_vanishes_stops_the_run(
    bucket: str, s3: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    source = draw(tmp_path / "in", 20)
    fsspec.filesystem("s3").mkdir("fleeting")
    s3.put(str(source), "s3://fleeting/in", recursive=True)

    class Vanish:
        def begin(self, images: int, known: int) -> None:
            pass

        def step(self, images: int, failed: int) -> None:
            other = fsspec.filesystem("s3", skip_instance_cache=True)  # as from another machine
            if other.exists("s3://fleeting/in"):
                other.rm("s3://fleeting/in", recursive=True)

        def note(self, text: str) -> None:
            pass

    with pytest.raises(DataError, match=r"s3://fleeting/in: the input is gone"):
        batch("s3://fleeting/in", tmp_path / "out", chunk=2, progress=Vanish())


def test_a_name_that_no_object_can_have_fails_alone(bucket: str, tmp_path: Path) -> None:
    """S3's documented limit is 1,024 bytes."""
    source = draw(tmp_path / "in", 2)
    deep = source.joinpath(*["d" * 200] * 5, "e" * 40)
    deep.mkdir(parents=True)
    (source / "even/000.jpg").rename(deep / "000.jpg")
    failed = batch(source, f"{bucket}/long", masks=True).failed
    assert ["bytes: object stores take 1024" in reason for reason in failed.values()] == [True]
