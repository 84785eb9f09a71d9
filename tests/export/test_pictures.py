"""VOC's and Cityscapes' PNGs and rows of Hugging Face's datasets, by what reads them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import datasets
import datumaro
import numpy as np
import pytest
from hypothesis import given
from PIL import Image

from naclip.errors import ImageError, SettingsError, UsageError
from naclip.evaluate.labels import CITYSCAPES_IDS
from naclip.export import cityscapes, rows
from naclip.export.formats import find
from naclip.export.item import VOID, Classes, Item
from naclip.export.options import Options
from naclip.export.pngs import voc_palette
from naclip.export.saving import Export

from .drawn import CLASSES, MANY, UNHURRIED, any_items, exported, item, items, picture, pictures


def test_the_palette_is_vocs() -> None:
    """The colours that VOC's page shows for its classes and for void."""
    palette = voc_palette().tolist()
    assert palette[:4] == [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0]]
    assert palette[15] == [192, 128, 128]  # person
    assert palette[20] == [0, 64, 128]  # tvmonitor
    assert palette[255] == [224, 224, 192]


@given(items())
@UNHURRIED
def test_vocs_values_by_pillow_are_the_labels(made: Item) -> None:
    with tempfile.TemporaryDirectory() as folder:
        image = Image.open(exported([made], "voc", Path(folder)) / "SegmentationClass/a/b.png")
        values = np.asarray(image)
    assert image.mode == "P"
    np.testing.assert_array_equal(values, np.where(made.labels == VOID, 255, made.labels))


def test_datumaro_imports_voc(tmp_path: Path) -> None:
    made = pictures()
    exported(made, "voc", tmp_path, Options(instances=True))
    data = datumaro.Dataset.import_from(str(tmp_path), "voc_segmentation")
    names = [label.name for label in data.categories()[datumaro.AnnotationType.label]]
    assert names == ["background", *CLASSES.things, "ignored"]
    assert len(data) == 3
    for one in made:
        labels = np.zeros(one.size, int)
        for annotation in data.get(one.stem, "default").annotations:
            mask = annotation.image.astype(bool)
            labels[mask] = annotation.label
        wanted = np.where(one.labels == VOID, names.index("ignored"), one.labels)
        np.testing.assert_array_equal(labels[one.labels != VOID], wanted[one.labels != VOID])
    objects = np.asarray(Image.open(tmp_path / "SegmentationObject/city/one.png"))
    assert set(np.unique(objects).tolist()) == {0, 1, 2, 3, 4, 255}


def test_what_voc_has_no_numbers_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="1000 classes: VOC's 8-bit files have room for 254"):
        exported([item(np.zeros((2, 2)), MANY)], "voc", tmp_path)
    dots = np.zeros((40, 40), np.uint16)
    dots[::2, ::2] = 1
    with pytest.raises(ImageError, match="more than 254 parts"):
        exported([item(dots)], "voc", tmp_path, Options(instances=True))


def test_cityscapes_ids_are_those_of_its_own_labels() -> None:
    from naclip import vocabulary

    words = vocabulary.load("cityscapes")
    found = cityscapes.ids(Classes.of(words))
    assert [number for number, _ in found] == list(CITYSCAPES_IDS)
    mixed = cityscapes.ids(Classes(("background", "house", "Car", "pond", "car"), True))
    assert [number for number, _ in mixed] == [34, 26, 35, 36]
    assert mixed[1][1] == (0, 0, 142)


def test_cityscapes_files_read_by_pillow(tmp_path: Path) -> None:
    made = pictures()[0]
    exported([made], "cityscapes", tmp_path, Options(instances=True))
    base = tmp_path / "gtFine/city/one_gtFine"
    ids = {row["name"]: row for row in json.loads((tmp_path / "labels.json").read_text())}
    labels = np.asarray(Image.open(f"{base}_labelIds.png"))
    parts = np.asarray(Image.open(f"{base}_instanceIds.png"))
    colours = np.asarray(Image.open(f"{base}_color.png"))
    for label, name in enumerate(CLASSES.things, start=1):
        where = made.labels == label
        np.testing.assert_array_equal(labels == ids[name]["id"], where)
        assert (colours[where] == ids[name]["color"]).all()
        np.testing.assert_array_equal(parts // 1000 == ids[name]["id"], where)
    assert len(np.unique(parts)) == 1 + 4
    with pytest.raises(SettingsError, match="1000 classes that Cityscapes does not have"):
        exported([item(np.zeros((2, 2)), MANY)], "cityscapes", tmp_path)


def test_hugging_face_loads_the_folder(tmp_path: Path) -> None:
    made = pictures()
    exported(made, "datasets", tmp_path / "out")
    data = datasets.load_dataset(
        "imagefolder",
        data_files={"train": f"{tmp_path}/out/**"},
        cache_dir=str(tmp_path / "cache"),
        split="train",
    )
    assert len(data) == 3
    for row, one in zip(data, made, strict=True):
        mask = np.where(one.labels == VOID, 255, one.labels)
        np.testing.assert_array_equal(np.asarray(row["mask"]), mask)
        np.testing.assert_array_equal(np.asarray(row["image"]), one.image)
        assert row["classes"] == [CLASSES.names[label] for label in row["labels"]]
        there = set(np.unique(one.labels).tolist()) - {VOID}
        assert set(row["labels"]) == there
        assert row["coverage"] == pytest.approx(
            [(mask == n).mean() for n in row["labels"]], abs=1e-6
        )


def test_hugging_face_takes_rows() -> None:
    made = pictures()
    data = datasets.Dataset.from_list([rows.row(one) for one in made])
    assert isinstance(data.features["mask"], datasets.Image)
    for row, one in zip(data, made, strict=True):
        mask = np.where(one.labels == VOID, 255, one.labels)
        np.testing.assert_array_equal(np.asarray(row["mask"]), mask)


@given(made=any_items())
@UNHURRIED
def test_hugging_face_keeps_any_mask(made: Item) -> None:
    """A thousand classes have 16 bits."""
    (row,) = datasets.Dataset.from_list([rows.row(made)])
    void = 255 if len(made.classes.names) < 256 else VOID
    expected = np.where(made.labels == VOID, void, made.labels)
    np.testing.assert_array_equal(np.asarray(row["mask"]), expected)
    assert row["labels"] == sorted(set(made.labels.ravel().tolist()) - {VOID})


def test_small_regions_become_background_in_rows() -> None:
    labels = picture()
    kept = rows.mask(item(labels), Options(min_pixels=2))
    expected = np.where(labels == VOID, 255, labels)
    expected[1, 20] = 0
    np.testing.assert_array_equal(kept, expected)
    plain = item(np.array([[0, 1, 1]]), Classes(("a", "b")))
    assert rows.mask(plain, Options(min_pixels=2)).tolist() == [[255, 1, 1]]


@pytest.mark.parametrize(
    ("format", "path", "options", "message"),
    [
        ("coco", "x.txt", Options(), "expected a file that ends in .json, or a folder"),
        ("datasets", "x.json", Options(), "expected a folder: this format is several files"),
        ("voc", "x.png", Options(instances=True), "a folder for several files, like Seg"),
        ("yolo", "x.txt", Options(), "a folder for files of 2 images, like labels/image.txt"),
    ],
)
def test_a_file_that_cannot_hold_the_export_is_refused(
    tmp_path: Path, format: str, path: str, options: Options, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Export(tmp_path / path, find(format), CLASSES, options, images=2 - options.instances)
    assert not list(tmp_path.iterdir())
