"""Files of labelling tools, read by CVAT's Datumaro, labelme's parser and supervision."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree

import datumaro
import numpy as np
import pytest
import supervision
from hypothesis import given, settings
from numpy.typing import NDArray
from rasterio.features import rasterize

from naclip.export.item import Item
from naclip.export.options import Options

from .drawn import CLASSES, UNHURRIED, any_items, exported, item, numbers, picture, pictures
from .labelme_parser import labelme


def filled(points: list[float], size: tuple[int, int]) -> NDArray[np.bool_]:
    """A polygon by GDAL: pixels whose centre is inside."""
    ring = np.reshape(points, (-1, 2)).tolist()
    shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    return rasterize([shape], out_shape=size).astype(bool)


def assert_cvat_is_imported(made: list[Item], folder: Path) -> None:
    exported(made, "cvat", folder, Options(instances=True), images="images")
    data = datumaro.Dataset.import_from(str(folder), "cvat")
    names = [label.name for label in data.categories()[datumaro.AnnotationType.label]]
    assert names == list(made[0].classes.things)
    for one in made:
        labels = np.zeros(one.size, int)
        for annotation in data.get(one.stem, "annotations").annotations:
            assert 0 < float(annotation.attributes["score"]) < 1
            labels[annotation.image.astype(bool)] = annotation.label + 1
        np.testing.assert_array_equal(labels, numbers(one))


def test_datumaro_imports_masks_and_scores_of_cvat(tmp_path: Path) -> None:
    assert_cvat_is_imported(pictures(), tmp_path)


@given(made=any_items())
@settings(UNHURRIED, max_examples=15)  # a thousand labels take it a second
def test_datumaro_imports_any_mask_of_cvat(made: Item) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_cvat_is_imported([made], Path(folder))


@given(any_items())
@UNHURRIED
def test_polygons_of_cvat_filled_by_gdal_are_the_mask(made: Item) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = exported([made], "cvat", Path(folder), Options(polygons=True)) / "annotations.xml"
        root = ElementTree.parse(path).getroot()
    labels = np.zeros(made.size, int)
    for shape in root.iterfind("image/polygon"):
        points = [float(x) for x in shape.attrib["points"].replace(";", ",").split(",")]
        labels[filled(points, made.size)] = 1 + made.classes.things.index(shape.attrib["label"])
    np.testing.assert_array_equal(labels, numbers(made))


def test_xml_of_cvat_says_what_its_documentation_asks_for(tmp_path: Path) -> None:
    root = ElementTree.parse(exported(pictures(), "cvat", tmp_path) / "annotations.xml").getroot()
    assert root.findtext("version") == "1.1"
    assert root.findtext("meta/task/size") == "3"
    assert [image.attrib["id"] for image in root.iter("image")] == ["0", "1", "2"]
    mask = root.find("image/mask")
    assert mask is not None
    lengths = [int(length) for length in mask.attrib["rle"].split(", ")]
    assert sum(lengths) == int(mask.attrib["width"]) * int(mask.attrib["height"])
    assert mask.attrib["rle"].startswith("0, 18, 4, 4"), "two rows of the ring, then its hole"


@pytest.mark.parametrize("polygons", [False, True])
@given(made=any_items())
@UNHURRIED
def test_labelmes_parser_reads_the_shapes(made: Item, polygons: bool) -> None:
    parser = labelme()
    with tempfile.TemporaryDirectory() as folder:
        options = Options(polygons=polygons)
        exported([made], "labelme", Path(folder), options, images=".")
        found = parser._label_file.LabelFile(f"{folder}/a/b.json")
    labels = np.zeros(made.size, int)
    for shape in found.shapes:
        if polygons:
            mask = filled(np.ravel(shape["points"]).tolist(), made.size)
        else:
            drawn, _ = parser.utils.shapes_to_label(made.size, [shape], {shape["label"]: 1})
            mask = drawn == 1
        labels[mask] = 1 + made.classes.things.index(shape["label"])
        assert 0 < shape["other_data"]["score"] < 1
    np.testing.assert_array_equal(labels, numbers(made))
    assert found.image_path == "b.jpg"


def test_supervision_loads_yolo(tmp_path: Path) -> None:
    """It draws polygons with their edge, so the masks are compared inside of that."""
    made = [item(np.kron(picture(), np.ones((20, 20))), name="photo.png")]
    exported(made, "yolo", tmp_path, images="images")
    data = supervision.DetectionDataset.from_yolo(
        *(str(tmp_path / name) for name in ("images", "labels", "data.yaml")), force_masks=True
    )
    assert data.classes == list(CLASSES.things)
    ((_, _, found),) = list(data)
    labels = np.zeros(made[0].size, int)
    for mask, number in zip(found.mask, found.class_id, strict=True):
        labels[np.asarray(mask)] = number + 1
    wrong = labels != numbers(made[0])
    assert wrong.mean() < 0.02
    assert len(found) == 1 + 2 + 2, "the 3s touch at a corner: two outlines"


@given(any_items())
@UNHURRIED
def test_lines_of_yolo_filled_by_gdal_are_the_mask(made: Item) -> None:
    assert_lines_are_the_mask(made)


def test_lines_of_yolo_have_digits_for_a_pixel_of_a_wide_image() -> None:
    labels = np.zeros((3, 300_000), np.uint16)
    labels[1, [100_003, 299_996]] = 1
    assert_lines_are_the_mask(item(labels))


def assert_lines_are_the_mask(made: Item) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = (exported([made], "yolo", Path(folder)) / "labels/a/b.txt").read_text()
    labels = np.zeros(made.size, int)
    for line in text.splitlines():
        number, *shares = line.split()
        points = np.reshape(shares, (-1, 2)).astype(float) * [made.size[1], made.size[0]]
        labels[filled(points.ravel().tolist(), made.size)] = int(number) + 1
    np.testing.assert_array_equal(labels, numbers(made))
