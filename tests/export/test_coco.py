"""COCO's files through pycocotools, supervision and Datumaro, and panoptic's definition."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import datumaro
import numpy as np
import pytest
import supervision
from hypothesis import given
from numpy.typing import NDArray
from PIL import Image
from pycocotools.coco import COCO

from naclip.export.detections import detections
from naclip.export.item import Item
from naclip.export.options import Options
from naclip.export.regions import regions

from .drawn import CLASSES, MANY, UNHURRIED, any_items, exported, item, numbers, pictures

JSON = "annotations/instances_default.json"


def drawn_by(coco: COCO, image: int, size: tuple[int, int]) -> NDArray[np.uint16]:
    labels = np.zeros(size, np.uint16)
    for annotation in coco.loadAnns(coco.getAnnIds(image)):
        mask = coco.annToMask(annotation).astype(bool)
        assert mask.sum() == annotation["area"]
        labels[mask] = annotation["category_id"]
    return labels


@pytest.mark.parametrize("polygons", [False, True])
@given(made=any_items())
@UNHURRIED
def test_pycocotools_draws_the_label_map(made: Item, polygons: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = Options(instances=True, polygons=polygons)
        coco = COCO(exported([made], "coco", Path(folder), options) / JSON)
    drawn = drawn_by(coco, 1, made.size)
    np.testing.assert_array_equal(drawn, numbers(made))


def test_pycocotools_reads_several_images_with_the_same_categories(tmp_path: Path) -> None:
    made = pictures()
    coco = COCO(exported(made, "coco", tmp_path) / JSON)
    assert {c["id"]: c["name"] for c in coco.loadCats(coco.getCatIds())} == {
        1: "road",
        2: 'a "b" & <c>',
        3: "tree",
    }
    for number, one in enumerate(made, start=1):
        image = coco.imgs[number]
        assert (image["file_name"], image["height"], image["width"]) == (one.name, *one.size)
        drawn = drawn_by(coco, number, one.size)
        np.testing.assert_array_equal(drawn, numbers(one))
    assert sorted(coco.anns) == list(range(1, 7))
    assert all(0 < annotation["score"] < 1 for annotation in coco.anns.values())


def test_pycocotools_takes_them_as_results_with_scores(tmp_path: Path) -> None:
    coco = COCO(exported(pictures(), "coco", tmp_path) / JSON)
    results = coco.loadRes(list(coco.anns.values()))
    assert [a["score"] for a in results.anns.values()] == [a["score"] for a in coco.anns.values()]
    assert [a["area"] for a in results.anns.values()] == [a["area"] for a in coco.anns.values()]


def test_pycocotools_reads_a_thousand_classes(tmp_path: Path) -> None:
    labels = np.arange(1000).reshape(20, 50)
    coco = COCO(exported([item(labels, MANY)], "coco", tmp_path) / JSON)
    np.testing.assert_array_equal(drawn_by(coco, 1, (20, 50)), labels + 1)


def test_an_image_of_void_alone_is_an_image_without_annotations(tmp_path: Path) -> None:
    coco = COCO(exported([pictures()[1]], "coco", tmp_path) / JSON)
    assert len(coco.imgs) == 1
    assert not coco.anns


@pytest.mark.parametrize("polygons", [False, True])
def test_supervision_loads_the_masks(tmp_path: Path, polygons: bool) -> None:
    """Its own polygons have rounded corners inwards: exact for run lengths alone."""
    made = [one for one in pictures() if one.name != "two.png"]
    exported(made, "coco", tmp_path, Options(polygons=polygons), images="images")
    data = supervision.DetectionDataset.from_coco(
        str(tmp_path / "images"), str(tmp_path / JSON), force_masks=True
    )
    assert data.classes == list(CLASSES.things)
    for (path, _, loaded), one in zip(data, made, strict=True):
        assert path.endswith(one.name)
        for mask, region in zip(loaded.mask, regions(one), strict=True):
            wrong = np.asarray(mask) != region.full()
            assert not wrong.any() or polygons


@given(made=any_items())
@UNHURRIED
def test_supervision_loads_any_mask(made: Item) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = exported([made], "coco", Path(name), Options(instances=True), images="images")
        data = supervision.DetectionDataset.from_coco(
            str(folder / "images"), str(folder / JSON), force_masks=True
        )
        assert data.classes == list(made.classes.things)
        ((_, _, loaded),) = list(data)
    labels = np.zeros(made.size, int)
    for place, number in enumerate(loaded.class_id):
        labels[np.asarray(loaded.mask[place])] = number + 1
    np.testing.assert_array_equal(labels, numbers(made))


@given(any_items())
@UNHURRIED
def test_detections_are_what_supervision_says_of_the_masks(made: Item) -> None:
    found = detections(made, Options(instances=True))
    expected = supervision.mask_to_xyxy(found.mask, coordinate_convention="exclusive")
    np.testing.assert_array_equal(found.xyxy, expected)
    labels = np.zeros(made.size, np.uint16)
    for mask, number, name in zip(found.mask, found.class_id, found["class_name"], strict=True):
        labels[mask] = number + 1
        assert made.classes.things[number] == name
    np.testing.assert_array_equal(labels, numbers(made))
    assert len(found.confidence) == len(found)


def test_supervision_writes_detections_and_reads_them_again(tmp_path: Path) -> None:
    made = pictures()[0]
    path = tmp_path / "one.png"
    Image.fromarray(made.image).save(path)
    found = detections(made)
    data = supervision.DetectionDataset(list(CLASSES.things), [str(path)], {str(path): found})
    data.as_coco(annotations_path=str(tmp_path / "s.json"))
    again = COCO(str(tmp_path / "s.json"))
    assert len(again.anns) == len(found)


@pytest.mark.parametrize("instances", [False, True])
@given(made=any_items())
@UNHURRIED
def test_panoptic_png_and_json_as_its_definition_says(made: Item, instances: bool) -> None:
    """id = R + 256 G + 65536 B; 0 is void; a segment's area and box are those of its pixels."""
    with tempfile.TemporaryDirectory() as name:
        folder = exported([made], "coco-panoptic", Path(name), Options(instances=instances))
        document = json.loads((folder / "annotations/panoptic_default.json").read_text())
        (annotation,) = document["annotations"]
        path = folder / "annotations/panoptic_default" / annotation["file_name"]
        red, green, blue = np.moveaxis(np.asarray(Image.open(path)).astype(int), 2, 0)
    ids = red + 256 * green + 65536 * blue
    segments = {segment["id"]: segment for segment in annotation["segments_info"]}
    assert set(np.unique(ids)) - {0} == set(segments)
    labels = np.zeros(made.size, int)
    for number, segment in segments.items():
        labels[ids == number] = segment["category_id"]
        rows, columns = np.nonzero(ids == number)
        assert segment["area"] == len(rows)
        box = [columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1]
        assert segment["bbox"] == box
    np.testing.assert_array_equal(labels, numbers(made))
    assert {c["isthing"] for c in document["categories"]} == {int(instances)}


THEIRS = pytest.mark.parametrize(
    ("format", "theirs"), [("coco", "coco_instances"), ("coco-panoptic", "coco_panoptic")]
)


def assert_datumaro_imports(made: list[Item], folder: Path, format: str, theirs: str) -> None:
    exported(made, format, folder, images="images/default")
    data = datumaro.Dataset.import_from(str(folder), theirs)
    for one in made:
        labels = np.zeros(one.size, int)
        for annotation in data.get(one.stem, "default").annotations:
            if hasattr(annotation, "image"):
                labels[annotation.image.astype(bool)] = annotation.label + 1
        np.testing.assert_array_equal(labels, numbers(one))


@THEIRS
def test_datumaro_imports_the_masks(tmp_path: Path, format: str, theirs: str) -> None:
    assert_datumaro_imports(pictures(), tmp_path, format, theirs)


@THEIRS
@given(made=any_items())
@UNHURRIED
def test_datumaro_imports_any_mask(made: Item, format: str, theirs: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_datumaro_imports([made], Path(folder), format, theirs)


def test_the_same_export_is_the_same_bytes(tmp_path: Path) -> None:
    first = exported(pictures(), "coco", tmp_path / "1") / JSON
    second = exported(pictures(), "coco", tmp_path / "2") / JSON
    assert first.read_bytes() == second.read_bytes()
