"""A bad image never stops a batch; a disk that is full does, cleanly."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

from naclip import errors
from naclip.bulk.worker import Read, Segmented, Worker

from .jobs import WORDS, batch, contents, draw, environment, run


def bomb() -> bytes:
    """A PNG of a hundred bytes that announces 4 gigapixels."""

    def part(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    header = struct.pack(">IIBBBBB", 65_000, 65_000, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", pixels) + part(b"IEND", b"")


def corrupt(source: Path) -> dict[str, str]:
    """1 in 50 files of a folder of 200, each in its way: name -> a word of the reason."""
    good = (source / "even/000.jpg").read_bytes()
    bad = {
        "even/010.jpg": (good[: len(good) // 2], "truncated"),
        "even/050.jpg": (b"", "empty"),
        "odd/deep/101.jpg": (b"not an image but a text\n", "not an image"),
        "odd/deep/151.jpg": (bomb(), "limit"),
    }
    for name, (data, _) in bad.items():
        (source / name).write_bytes(data)
    png = io.BytesIO()  # a wrong extension is no failure: files are known by their contents
    Image.open(source / "even/020.jpg").save(png, "PNG")
    (source / "even/020.jpg").write_bytes(png.getvalue())
    return {name: reason for name, (_, reason) in bad.items()}


def test_one_in_fifty_corrupt(tmp_path: Path) -> None:
    source, output = draw(tmp_path / "in", 200), tmp_path / "out"
    healthy = tmp_path / "healthy"
    shutil.copytree(source, healthy)
    bad = corrupt(source)
    done = run(source, output, "--table")
    assert done.returncode == 3
    report = {
        row["path"]: row["error"] for row in json.loads((output / "failures.json").read_text())
    }
    assert list(report) == sorted(bad)
    for name, reason in bad.items():
        assert reason in report[name]
        assert f"failed: {name}: {name}" in done.stderr or name in done.stderr
    masks = {p.relative_to(output / "masks").as_posix() for p in (output / "masks").rglob("*.png")}
    assert len(masks) == 196
    assert not masks & {name.replace(".jpg", ".png") for name in bad}

    again = batch(source, output, table=True)  # known failures stay failures, and are not tried
    assert dict(again.failed) == report
    assert again.before == 200

    for name in bad:
        shutil.copy(healthy / name, source / name)
    assert not batch(source, output, table=True, retry_failed=True).failed
    shutil.copy(source / "even/020.jpg", healthy / "even/020.jpg")
    assert not batch(healthy, tmp_path / "clean", table=True).failed
    theirs, ours = contents(tmp_path / "clean"), contents(output)
    assert {**ours, "run.json": ""} == {**theirs, "run.json": ""}  # which names the input


def test_a_file_that_went_bad_has_no_mask_of_its_past(tmp_path: Path) -> None:
    source, output = draw(tmp_path / "in", 4), tmp_path / "out"
    (source / "even/000.jpg").write_bytes(b"")
    batch(source, output)
    draw(source, 1)
    (source / "even/002.jpg").unlink()
    finished = batch(source, output, retry_failed=True)
    assert finished.failed == {"even/002.jpg": "even/002.jpg: no such file"}
    assert sorted(p.name for p in (output / "masks/even").iterdir()) == ["000.png"]


def test_too_narrow_an_image_fails_alone(tmp_path: Path) -> None:
    source, output = draw(tmp_path / "in", 6), tmp_path / "out"
    Image.new("RGB", (4000, 6)).save(source / "even/000.jpg")
    (reason,) = batch(source, output).failed.values()
    assert "even/000.jpg is 4000x6" in reason
    assert "narrower than one patch" in reason
    assert len(list((output / "masks").rglob("*.png"))) == 5


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the table does not fit."""
    source, output = draw(tmp_path / "in", 8), tmp_path / "out"
    code = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    code += "from naclip.cli.main import main; import naclip.bulk.table as t; f = t.write_shards;"
    code += "limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200));"
    code += "t.write_shards = lambda *a: (limit(), f(*a))[1]; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "batch", str(source), str(output), *WORDS, "--table"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 1
    assert "cannot be written (File too large)" in done.stderr
    assert "run the same command: 8 of 8 images are done and kept" in done.stderr
    assert "Traceback" not in done.stderr
    assert batch(source, output, table=True).before == 8
    assert (output / "table/part-00000.parquet").exists()


def obey_permissions() -> None:
    """Root may write everywhere, until a capability is dropped that the next exec then lacks."""
    if os.geteuid() == 0:
        drop_from_bounding_set, dac_override = 24, 1  # of linux/prctl.h, linux/capability.h
        assert ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override) == 0


def test_lost_permission(tmp_path: Path) -> None:
    source, output = draw(tmp_path / "in", 4), tmp_path / "out"
    (output / "masks").mkdir(parents=True)
    (output / "masks").chmod(0o500)
    done = run(source, output, preexec_fn=obey_permissions)
    assert done.returncode == 1
    assert "get permission, and run the same command: 0 of 4" in done.stderr
    assert "Traceback" not in done.stderr
    (output / "masks").chmod(0o700)
    assert batch(source, output).images == 4


@pytest.mark.parametrize("kind", ["folder", "list"])
def test_a_vanished_input_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = draw(tmp_path / "in", 20)
    source = folder if kind == "folder" else tmp_path / "list.txt"
    (tmp_path / "list.txt").write_text("\n".join(map(str, sorted(folder.rglob("*.jpg")))))
    segment = Worker.segment

    def vanishing(self: Worker, read: Read) -> Segmented:
        with contextlib.suppress(FileNotFoundError):  # at once, as a disk that is taken away
            folder.rename(tmp_path / "gone")
        return segment(self, read)

    monkeypatch.setattr(Worker, "segment", vanishing)
    with pytest.raises(errors.DataError, match=r"the input is gone .* bring it back"):
        batch(source, tmp_path / "out", chunk=2)
    monkeypatch.undo()
    draw(folder, 20)
    finished = batch(source, tmp_path / "out", chunk=2)
    assert finished.images == 20
    assert finished.before > 0
    assert not finished.failed
    assert not batch(source, tmp_path / "clean", chunk=2).failed
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")
