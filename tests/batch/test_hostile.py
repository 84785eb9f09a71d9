"""Names, files and moments that nobody plans for."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from naclip.bulk import inputs, table, worker
from naclip.bulk.record import FileLog
from naclip.bulk.stores import LocalStore
from naclip.cli.ray_options import check_unused
from naclip.errors import DataError, ImageError, SettingsError, UsageError

from .jobs import WORDS, batch, contents, draw, environment, run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return draw(tmp_path / "in", 4)


def rename(source: Path, name: bytes) -> None:
    os.rename(os.fsencode(source / "even/000.jpg"), os.fsencode(source) + b"/" + name)  # noqa: PTH104


def tarred(source: Path, *names: str) -> Path:
    """One picture under all these names; a NUL fits into no header but that of pax."""
    target = source.parent / "hostile.tar"
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            member = tar.gettarinfo(source / "even/000.jpg")
            member.pax_headers = {"path": name}
            with (source / "even/000.jpg").open("rb") as file:
                tar.addfile(member, file)
    return target


def test_a_name_that_no_file_can_have_fails_alone(source: Path, tmp_path: Path) -> None:
    tar = tarred(
        source, "a\0b.jpg", f"{'x' * 300}.jpg", "/".join(["y" * 200] * 30) + ".jpg", "ok.jpg"
    )
    failed = batch(tar, tmp_path / "out", overlays=True, table=True).failed
    reasons = sorted(reason.partition(": ")[2] for reason in failed.values())
    assert "a part of its name would be 304 bytes" in reasons[0]
    assert "takes 255" in reasons[0]
    assert reasons[1] == "its name holds a NUL byte"
    assert "takes 4095 bytes" in reasons[2]
    assert [path.name for path in (tmp_path / "out/masks").rglob("*")] == ["ok.png"]
    assert batch(tar, tmp_path / "out", overlays=True, table=True, retry_failed=True).before == 4


def test_names_in_another_encoding_than_utf_8(source: Path, tmp_path: Path) -> None:
    """Their bytes are kept in masks' names, and shown in the table."""
    rename(source, b"caf\xe9.jpg")
    (source / "odd/deep/001.jpg").write_bytes(b"")
    rename_failed = os.fsencode(source) + b"/odd/deep/caf\xe9.jpg"
    os.rename(source / "odd/deep/001.jpg", rename_failed)  # noqa: PTH104
    assert len(batch(source, tmp_path / "out", table=True).failed) == 1
    assert b"caf\xe9.png" in os.listdir(os.fsencode(tmp_path / "out/masks"))  # noqa: PTH208
    rows = pq.read_table(tmp_path / "out/table/part-00000.parquet").to_pylist()
    assert r"caf\xe9.jpg" in [row["path"] for row in rows]
    assert r"odd/deep/caf\xe9.jpg: the file is empty" in [row["error"] for row in rows]
    failed = batch(source, tmp_path / "coco", formats=["coco"]).failed
    assert ["not UTF-8, which --format needs" in reason for reason in failed.values()] == [True] * 2


def test_an_input_of_another_encoding_is_resumed(source: Path, tmp_path: Path) -> None:
    other = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    source.rename(other)
    assert batch(other, tmp_path / "out").before == 0
    assert batch(other, tmp_path / "out").before == 4


def test_pipes_are_not_waited_for_and_broken_links_are_failures(
    source: Path, tmp_path: Path
) -> None:
    os.mkfifo(source / "pipe.jpg")
    (source / "link.jpg").symlink_to(source / "nothing.jpg")
    done = run(source, tmp_path / "out")
    assert done.returncode == 3
    assert "failed: pipe.jpg: not a file\n" in done.stderr
    assert "failed: link.jpg: no such file\n" in done.stderr


def test_an_image_beside_a_folder_that_is_called_as_its_mask(source: Path, tmp_path: Path) -> None:
    (source / "even/000.png/more").mkdir(parents=True)
    (source / "odd/deep/001.jpg").rename(source / "even/000.png/more/x.jpg")
    assert not batch(source, tmp_path / "out").failed
    masks = sorted(
        path.as_posix() for path in (tmp_path / "out/masks").rglob("*.png") if path.is_file()
    )
    assert masks[0].endswith("even/000.jpg.png")
    assert masks[1].endswith("even/000.png/more/x.png")


def test_an_image_too_long_for_an_overlay_fails_alone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "JPEG_SIDE", 90)
    failed = batch(source, tmp_path / "out", overlays=True, formats=["coco"]).failed
    reason = "its overlay would be 64x96: JPEG takes 90 a side"
    assert failed == {name: f"{name}: {reason}" for name in ("even/000.jpg", "odd/deep/003.jpg")}
    names = sorted(path.stem for path in (tmp_path / "out/masks").rglob("*.png"))
    assert names == ["001", "002"]
    (export,) = (tmp_path / "out/exports/coco").rglob("*.json")
    assert [f"{name}.jpg" in export.read_text() for name in ("000", "001")] == [False, True]


def test_the_longest_side_of_a_jpeg_is_libjpegs() -> None:
    def overlay(width: int) -> Any:
        labels = np.zeros((1, width), np.uint8)
        return SimpleNamespace(labels=labels, overlay=lambda: np.zeros((1, width, 3), np.uint8))

    assert worker.picture_bytes("overlays/a.jpg", overlay(65_500))
    with pytest.raises(ImageError, match="JPEG takes 65500 a side"):
        worker.picture_bytes("overlays/a.jpg", overlay(65_501))
    with pytest.raises(OSError, match="broken data stream"):
        Image.fromarray(overlay(65_501).overlay()).save(io.BytesIO(), "JPEG")


def test_a_tar_as_unpacking_it_would_have_it(source: Path) -> None:
    """The later of two members of one name; no hidden files of other systems."""
    tar = tarred(source, "a.jpg", "b.jpg", "a.jpg", "dir/._b.jpg")
    items = {item.name: item.offset for item in inputs.find(str(tar)).items}
    with tarfile.open(tar) as file:
        assert items == {name: file.getmember(name).offset_data for name in ("a.jpg", "b.jpg")}


def test_a_tar_with_a_damaged_header_in_the_middle_is_an_error(source: Path) -> None:
    """What comes after it would be missed silently; GNU tar skips it and fails in the end too."""
    tar = tarred(source, "a.jpg", "b.jpg", "c.jpg")
    with tarfile.open(tar) as file:
        second = file.getmembers()[1].offset
    data = bytearray(tar.read_bytes())
    data[second : second + 512] = b"garbage!" * 64
    tar.write_bytes(data)
    with pytest.raises(DataError, match=f"byte {second} is not a member's header"):
        inputs.find(str(tar))
    tar.write_bytes(data[: second + 100])
    with pytest.raises(DataError, match="cannot be read"):
        inputs.find(str(tar))


def test_lines_of_a_list_end_where_lines_end(source: Path) -> None:
    """Not at U+0085 and U+2028, which names may hold."""
    rename(source, "a\u2028b\u0085c.jpg".encode())
    (source / "list.txt").write_bytes("a\u2028b\u0085c.jpg\r\neven/002.jpg\r\n".encode())
    names = [item.name for item in inputs.find(str(source / "list.txt")).items]
    assert names == ["a\u2028b\u0085c.jpg", "even/002.jpg"]


class Notes:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def begin(self, images: int, known: int) -> None:
        pass

    def step(self, images: int, failed: int) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_an_output_inside_the_input_by_another_spelling(source: Path) -> None:
    progress = Notes()
    for _ in range(2):
        batch(source, source / "even/../out", progress=progress)
    assert progress.notes == []


def test_killed_while_it_deletes_an_earlier_output(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of the earlier run must not outlive its masks."""
    source, output = source / "even", tmp_path / "out"
    options: dict[str, Any] = {"chunk": 1}
    batch(source, tmp_path / "clean", **options)
    batch(source, output, **options)
    delete = LocalStore.delete
    for calls in range(6):  # items, record, whole; failures, run.json; the word itself

        def killed(self: LocalStore, name: str, left: list[int] = [calls]) -> None:  # noqa: B006
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            delete(self, name)

        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(LocalStore, "delete", killed)
            batch(source, output, overwrite=True, **options)
        batch(source, output, **options)
        assert contents(output) == contents(tmp_path / "clean")


def test_names_are_on_the_disk_before_the_record_says_so(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """POSIX: a file's new name is durable when its folder is synced, not before."""
    output = tmp_path / "out"
    unsynced: set[Path] = set()
    lines = 0
    sync, replace, add = os.fsync, Path.replace, FileLog.add

    def fsync(descriptor: int) -> None:
        unsynced.discard(Path(os.readlink(f"/proc/self/fd/{descriptor}")))  # noqa: PTH115
        sync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        done = replace(self, target)
        unsynced.update(folder for folder in target.parents if folder.is_relative_to(output))
        return done

    def added(self: FileLog, line: bytes) -> None:
        nonlocal lines
        lines += 1
        assert not unsynced
        add(self, line)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(FileLog, "add", added)
    from naclip.bulk.run import LocalMachine

    batch(source, output, table=True, chunk=4, machines=LocalMachine(1, 1))
    assert lines == 1
    assert not unsynced


def test_a_record_that_does_not_fit_on_the_disk(source: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: half a line fits."""
    output = tmp_path / "out"
    code = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    code += "from naclip.cli.main import main; from naclip.bulk.record import FileLog as F;"
    code += "add = F.add; limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40));"
    code += "F.add = lambda *a: (limit() if F.seen else None, setattr(F, 'seen', 1), add(*a));"
    code += "F.seen = 0; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "batch", str(source), str(output), *WORDS, "--chunk", "2",
         "--writers", "1"],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 1
    assert "record.jsonl: cannot be written (File too large): make room" in done.stderr
    assert "Traceback" not in done.stderr
    assert (output / ".naclip/record.jsonl").stat().st_size == 40, "half a line is there"
    assert batch(source, output, chunk=2).before == 2
    assert (output / ".naclip/record.jsonl").read_bytes().count(b"\n") == 2


def test_a_shard_is_put_together_in_parts_that_fit_into_memory(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(source, tmp_path / "one", table=True, chunk=1)
    monkeypatch.setattr(table, "GROUP", 1)
    batch(source, tmp_path / "four", table=True, chunk=1)
    one, four = (
        pq.ParquetFile(tmp_path / name / "table/part-00000.parquet") for name in ("one", "four")
    )
    assert (one.num_row_groups, four.num_row_groups) == (1, 4)
    assert one.read().equals(four.read(), check_metadata=True)


def test_options_of_ray_without_ray_are_refused() -> None:
    check_unused(None, "1,1000", 1, 0)
    with pytest.raises(SettingsError, match="--address, --actors: of Ray, which is not asked for"):
        check_unused("auto", "1,4", 1, 0)


def test_two_images_for_one_output_are_refused(source: Path) -> None:
    for name in ("a.jpg", "a.png", "a.png.jpg"):
        Image.new("RGB", (64, 64)).save(source / name)
    with pytest.raises(
        UsageError, match=r"two images would be written to a\.png: give one another"
    ):
        inputs.find(str(source))
