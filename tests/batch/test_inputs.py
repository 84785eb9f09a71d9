"""Every way to name images; names mirror the input, and cannot lead out of the output."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from naclip.bulk import inputs, table
from naclip.errors import DataError, MissingExtraError, UsageError

from .jobs import batch, draw


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return draw(tmp_path / "in", 5)


NAMES = [f"{'even' if n % 2 == 0 else 'odd/deep'}/{n:03d}.jpg" for n in (0, 2, 4, 1, 3)]


def names(source: Path | str) -> list[str]:
    return [item.name for item in inputs.find(str(source)).items]


def test_folder_is_recursive_and_leaves_other_files_out(source: Path) -> None:
    (source / "notes.txt").write_text("x")
    (source / "even/._000.jpg").write_text("of another system")
    assert names(source) == NAMES
    assert names(f"file://{source}") == NAMES


def test_glob_mirrors_what_is_below_its_fixed_part(source: Path) -> None:
    assert names(f"{source}/even/*.jpg") == ["000.jpg", "002.jpg", "004.jpg"]
    assert names(f"{source}/*/**/00[12].jpg") == ["even/002.jpg", "odd/deep/001.jpg"]


def test_single_image(source: Path) -> None:
    assert names(source / "even/000.jpg") == ["000.jpg"]


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("kind", ["txt", "csv", "bare.csv", "parquet"])
def test_lists(source: Path, kind: str, absolute: bool) -> None:
    paths = [str(source / name) if absolute else name for name in NAMES]
    target = source / f"list.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"id": range(5), "path": paths}), target)
    elif kind == "csv":
        target.write_text("id,path\n" + "".join(f"{n},{p}\n" for n, p in enumerate(paths)))
    else:
        target.write_text("\n".join([*paths, paths[0], ""]))
    assert names(target) == NAMES
    found = inputs.find(str(target)).items
    assert [item.place for item in found] == [str(source / name) for name in NAMES]


def test_a_list_elsewhere_mirrors_below_the_common_folder(source: Path, tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    target = tmp_path / "lists/all.txt"
    target.write_text("\n".join(f"../in/{name}" for name in NAMES))
    assert names(target) == NAMES


def test_a_csv_without_a_column_of_paths_says_what_to_call_it(source: Path) -> None:
    (source / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match="no column of paths: call it path, image"):
        names(source / "a.csv")


def test_a_row_without_a_path_is_named(source: Path) -> None:
    (source / "a.csv").write_text("id,path\n1,even/000.jpg\n2\n3,even/002.jpg\n")
    with pytest.raises(DataError, match=r"a\.csv: row 2 of 3 has no path: fill it or drop it"):
        names(source / "a.csv")
    pq.write_table(pa.table({"url": ["even/000.jpg", None]}), source / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: row 2 of 2 has no path"):
        names(source / "a.parquet")


def test_one_file_by_two_spellings_is_one_image(source: Path) -> None:
    spellings = ("even/000.jpg", "./even/000.jpg", "odd/../even/000.jpg", source / "even/000.jpg")
    (source / "a.txt").write_text("\n".join(map(str, spellings)))
    assert names(source / "a.txt") == ["even/000.jpg"]


def test_a_list_of_places_of_many_kinds(source: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{source}/even/000.jpg\ns3://bucket/one/two.jpg\n")
    found = {item.name: item.place for item in inputs.find(str(tmp_path / "a.txt")).items}
    local = f"{source}/even/000.jpg"
    assert found == {local[1:]: local, "s3/bucket/one/two.jpg": "s3://bucket/one/two.jpg"}


def tarred(target: Path, source: Path, prefix: str = "") -> Path:
    with tarfile.open(target, "w") as tar:
        for name in NAMES:
            tar.add(source / name, prefix + name)
        tar.addfile(tarfile.TarInfo("even/000.json"), io.BytesIO())
    return target


def test_tar_gives_the_masks_of_its_folder(source: Path, tmp_path: Path) -> None:
    tar = tarred(tmp_path / "shard.tar", source)
    assert names(tar) == NAMES
    assert not batch(tar, tmp_path / "a").failed
    assert not batch(source, tmp_path / "b").failed
    for name in NAMES:
        png = Path("masks", name).with_suffix(".png")
        assert (tmp_path / "a" / png).read_bytes() == (tmp_path / "b" / png).read_bytes()


def test_members_of_a_tar_cannot_lead_out(source: Path, tmp_path: Path) -> None:
    tar = tarred(tmp_path / "evil.tar", source, "../../")
    assert names(tar) == NAMES


def test_several_tars_have_a_folder_each(source: Path, tmp_path: Path) -> None:
    tarred(tmp_path / "s-0.tar", source)
    tarred(tmp_path / "s-1.tar", source)
    expected = [f"s-{shard}/{name}" for shard in (0, 1) for name in NAMES]
    assert names(f"{tmp_path}/s-*.tar") == expected


def test_damaged_inputs_are_one_line(tmp_path: Path) -> None:
    for name in ("a.tar", "a.parquet"):
        (tmp_path / name).write_bytes(b"nonsense" * 100)
        with pytest.raises(DataError, match="cannot be read"):
            names(tmp_path / name)
    with pytest.raises(DataError, match="no such file or folder"):
        names(tmp_path / "missing")
    with pytest.raises(DataError, match="no images found"):
        names(tmp_path)
    (tmp_path / "a.docx").write_text("x")
    with pytest.raises(UsageError, match="expected a folder, a glob, an image, or one of"):
        names(tmp_path / "a.docx")
    with pytest.raises((UsageError, MissingExtraError), match="nowhere://x"):
        names("nowhere://x")


def test_names_that_differ_in_suffix_keep_it(source: Path) -> None:
    Image.new("RGB", (64, 64)).save(source / "even/000.png")
    found = {item.name: item.target for item in inputs.find(str(source)).items}
    assert found["even/000.jpg"] == "even/000.jpg"
    assert found["even/000.png"] == "even/000.png"
    assert found["even/002.jpg"] == "even/002"


def test_an_output_inside_the_input_is_not_an_input(source: Path) -> None:
    output = source / "out"
    assert batch(source, output, overlays=True).images == 5
    assert batch(source, output, overlays=True).images == 5
    assert names(source) != NAMES
    assert [i.name for i in inputs.find(str(source), without=str(output)).items] == NAMES


def test_table_equals_the_masks(source: Path, tmp_path: Path) -> None:
    (source / "even/000.jpg").write_bytes(b"")
    output = tmp_path / "out"
    batch(source, output, table=True, chunk=2)
    read = pq.read_table(output / "table/part-00000.parquet")
    rows = read.to_pylist()
    assert [row["path"] for row in rows] == NAMES
    assert rows[0]["error"] == "even/000.jpg: the file is empty"
    assert rows[0]["rle_labels"] is None
    classes = read.schema.metadata[b"naclip.classes"].decode().split("\n")
    for row in rows[1:]:
        mask = np.asarray(Image.open(output / "masks" / Path(row["path"]).with_suffix(".png")))
        np.testing.assert_array_equal(table.labels_of(row), mask)
        present = {classes[label]: (mask == label).mean() for label in np.unique(mask)}
        assert dict(zip(row["classes"], row["coverage"], strict=True)) == pytest.approx(present)
        assert row["error"] is None


def test_shards_are_whole_chunks_in_order(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "SHARD", 4)
    batch(source, tmp_path / "out", table=True, masks=False, chunk=2)
    shards = sorted((tmp_path / "out/table").iterdir())
    assert [path.name for path in shards] == ["part-00000.parquet", "part-00001.parquet"]
    assert [name for path in shards for name in pq.read_table(path)["path"].to_pylist()] == NAMES
    assert not (tmp_path / "out/masks").exists()


def test_an_output_that_is_a_file_is_refused(source: Path) -> None:
    with pytest.raises(UsageError, match=r"000\.jpg is a file: expected a folder or URL"):
        batch(source, source / "even/000.jpg")


def test_nothing_to_write_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing would be written"):
        batch(source, tmp_path / "out", masks=False)
