"""`naclip segment --format`, `naclip convert`, the methods of a result: files and processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import supervision
from PIL import Image
from pycocotools.coco import COCO

import naclip
from naclip.errors import DataError, SettingsError, UsageError
from naclip.export.convert import convert
from naclip.export.formats import FORMATS
from naclip.export.item import VOID

from ..batch.jobs import batch, draw
from ..cli.test_segment import CAT, MODEL, PARITY, run
from ..test_results import segmentation
from .drawn import picture

COFFEE = str(PARITY / "coffee.png")
WORDS = ["-c", "cat", "-c", "sofa=couch,settee", "-m", MODEL, "--no-refine"]
JSON = "annotations/instances_default.json"


@pytest.fixture
def masks(tmp_path: Path) -> Path:
    """Index PNGs of two folders, and classes.txt beside them."""
    for name in ("masks/a/1.png", "masks/b/1.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        labels = np.where(picture() == VOID, 255, picture()).astype(np.uint8)
        Image.fromarray(labels).save(path)
    (tmp_path / "classes.txt").write_text("background\nroad\nhouse, building\ntree\n")
    return tmp_path / "masks"


def drawn(coco: COCO, image: int) -> np.ndarray[Any, Any]:
    found = [
        coco.annToMask(a).astype(int) * a["category_id"]
        for a in coco.loadAnns(coco.getAnnIds(image))
    ]
    return np.sum(found, axis=0)


def test_segment_writes_images_of_many_into_one_coco(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("segment", CAT, COFFEE, *WORDS, "--format", "coco", "--instances", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert f"wrote {out}" in done.stdout
    coco = COCO(out)
    assert [image["file_name"] for image in coco.imgs.values()] == ["chelsea.png", "coffee.png"]
    labels = np.asarray(Image.open(CAT)).shape[:2]
    np.testing.assert_array_equal(drawn(coco, 1) > 0, np.ones(labels), "no background: all of it")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--format", "coc", "-o", "x.json"], 2, "no format 'coc'; did you mean 'coco'"),
        (["--format", "coco"], 2, "needs a place: -o FILE, or -o FOLDER"),
        (["--format", "coco", "-o", "x.png"], 2, "expected a file that ends in .json"),
        (["--instances", "-o", "x.png"], 2, "go with a --format"),
    ],
)
def test_misuse_is_one_line(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    done = run("segment", CAT, *WORDS, *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_convert_takes_what_batch_wrote(tmp_path: Path) -> None:
    """Classes and names come from the run; the failed image is left out, as in the batch."""
    source, output = draw(tmp_path / "in", 5), tmp_path / "out"
    (source / "bad.jpg").write_text("no image")
    batch(source, output, formats=["coco"], chunk=2)
    done = run("convert", str(output), "--format", "coco", "-o", str(tmp_path / "coco"))
    assert done.returncode == 0, done.stderr
    assert "5 masks are in" in done.stdout
    found = json.loads((tmp_path / "coco" / JSON).read_text())
    of_batch = json.loads((output / "exports/coco" / JSON).read_text())
    assert all(0 < annotation.pop("score") <= 1 for annotation in of_batch["annotations"])
    assert found == of_batch
    (output / "masks/even/000.png").unlink()
    with pytest.raises(DataError, match=r"000.png: no such file, but the batch says"):
        convert(output, tmp_path / "again", "coco")
    with pytest.raises(UsageError, match="leave --classes out"):
        convert(output, tmp_path / "again", "coco", classes=tmp_path / "classes.txt")


def test_an_unfinished_batch_is_not_converted(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"classes": ["a", "b"], "background": false}')
    with pytest.raises(DataError, match="the batch is not finished: run the same command again"):
        convert(tmp_path, tmp_path / "out", "coco")


def test_convert_takes_index_pngs_of_any_program(masks: Path, tmp_path: Path) -> None:
    count = naclip.convert(masks, tmp_path / "x.json", "coco", classes=tmp_path / "classes.txt")
    assert count == 2
    coco = COCO(tmp_path / "x.json")
    assert [image["file_name"] for image in coco.imgs.values()] == ["a/1.png", "b/1.png"]
    assert [c["name"] for c in coco.cats.values()] == ["road", "house", "tree"]
    np.testing.assert_array_equal(drawn(coco, 1), np.where(picture() == VOID, 0, picture()))
    assert not any("score" in annotation for annotation in coco.anns.values())


def test_convert_finds_the_images(masks: Path, tmp_path: Path) -> None:
    for folder in "ab":
        path = tmp_path / f"images/{folder}/1.jpg"
        path.parent.mkdir(parents=True)
        Image.new("RGB", (24, 16)).save(path)
    options: dict[str, Any] = {"classes": tmp_path / "classes.txt", "images": tmp_path / "images"}
    convert(masks, tmp_path / "out", "datasets", **options)
    copied = tmp_path / "out/images/b/1.jpg"
    assert copied.read_bytes() == (tmp_path / "images/b/1.jpg").read_bytes()
    (tmp_path / "images/b/1.jpg").unlink()
    with pytest.raises(DataError, match=r"b/1.png: no image .*images/b/1.\* beside it"):
        convert(masks, tmp_path / "out", "datasets", **options)


def test_sixteen_bits_and_another_value_for_void(tmp_path: Path) -> None:
    names = tmp_path / "classes.txt"
    names.write_text("".join(f"class {n}\n" for n in range(300)))
    (tmp_path / "masks").mkdir()
    values = np.array([[0, 299, 255], [7, 7, 7]], np.uint16)
    Image.fromarray(values).save(tmp_path / "masks/x.png")
    convert(tmp_path / "masks", tmp_path / "x.json", "coco", classes=names, void=7)
    coco = COCO(tmp_path / "x.json")
    assert drawn(coco, 1).tolist() == [[1, 300, 256], [0, 0, 0]]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (np.full((2, 2), 9, np.uint8), "a pixel has the label 9, but there are 4 classes"),
        (np.zeros((2, 2, 3), np.uint8), "x.png is a picture of mode RGB: expected a label a pixel"),
        (None, "x.png: cannot be read as a mask"),
    ],
)
def test_masks_that_are_none_are_named(
    masks: Path, tmp_path: Path, contents: Any, message: str
) -> None:
    if contents is None:
        (masks / "x.png").write_bytes(b"\x89PNG")
    else:
        Image.fromarray(contents).save(masks / "x.png")
    with pytest.raises((DataError, SettingsError), match=message):
        convert(masks, tmp_path / "out.json", "coco", classes=tmp_path / "classes.txt")
    assert not (tmp_path / "out.json").exists()


def test_classes_and_masks_have_to_be_there(masks: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a file of them with --classes"):
        convert(masks, tmp_path / "out", "coco")
    with pytest.raises(DataError, match="no such folder of masks"):
        convert(tmp_path / "none", tmp_path / "out", "coco")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no masks found"):
        convert(tmp_path / "empty", tmp_path / "out", "coco", classes=tmp_path / "classes.txt")


def test_methods_of_a_result(tmp_path: Path) -> None:
    result = segmentation(4, background=True)
    document = result.to_coco(instances=True)
    assert {a["category_id"] for a in document["annotations"]} <= {1, 2, 3}
    result.export(tmp_path / "x.json", "coco", instances=True)
    assert json.loads((tmp_path / "x.json").read_text()) == document
    found = result.to_supervision()
    assert isinstance(found, supervision.Detections)
    for mask, number in zip(found.mask, found.class_id, strict=True):
        np.testing.assert_array_equal(mask, result.labels == number + 1)
    assert result.to_geojson()["features"][0]["properties"]["class"] == "class 1"
    assert np.array_equal(result.to_row()["mask"], result.labels)
    for name in FORMATS:
        result.export(tmp_path / name, name)
        assert any(path.is_file() for path in (tmp_path / name).rglob("*"))


def test_formats_are_listed_without_their_libraries() -> None:
    code = "import sys; from naclip.export import formats; "
    code += "print(sorted({'torch', 'pycocotools', 'supervision', 'rasterio'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    listed = run("formats", "--json")
    assert [row["format"] for row in json.loads(listed.stdout)] == list(FORMATS)
