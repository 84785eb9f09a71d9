"""Readers of the official layouts, against label definitions written out in layouts.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from naclip.errors import DataError
from naclip.evaluate.datasets import BENCHMARKS, open_benchmark

from . import layouts
from .layouts import VOID, every


def truth_of(name: str, root: Path) -> np.ndarray:
    data = open_benchmark(name, root)
    assert len(data.samples) == 1
    assert data.samples[0].picture().size == data.samples[0].truth().shape
    return data.samples[0].truth()


def test_voc21_keeps_background_and_voc20_makes_it_void(tmp_path: Path) -> None:
    raw = every([*range(21), 255])
    layouts.make_voc(tmp_path, {"2007_000033": raw})
    assert (truth_of("voc21", tmp_path) == np.where(raw == 255, VOID, raw.astype(int))).all()
    expected = np.where((raw == 255) | (raw == 0), VOID, raw.astype(int) - 1)
    assert (truth_of("voc20", tmp_path) == expected).all()


def test_context60_keeps_background_and_context59_makes_it_void(tmp_path: Path) -> None:
    raw = every(list(range(60)))
    layouts.make_voc(tmp_path, {"2008_000002": raw}, context=True)
    assert (truth_of("context60", tmp_path) == raw).all()
    expected = np.where(raw == 0, VOID, raw.astype(int) - 1)
    assert (truth_of("context59", tmp_path) == expected).all()


def test_ade20k_zero_is_void_and_others_shift_down(tmp_path: Path) -> None:
    raw = every(list(range(151)))
    layouts.make_ade(tmp_path, {"ADE_val_00000001": raw})
    expected = np.where(raw == 0, VOID, raw.astype(int) - 1)
    assert (truth_of("ade20k", tmp_path) == expected).all()


def test_cityscapes_label_ids_become_train_ids_by_the_official_table(tmp_path: Path) -> None:
    raw = every(list(range(34)))
    layouts.make_cityscapes(tmp_path, raw)
    truth = truth_of("cityscapes", tmp_path)
    for value in range(34):
        expected = layouts.CITYSCAPES_TRAIN_ID.get(value, VOID)
        assert set(truth[raw == value].tolist()) == {expected}


def test_cityscapes_label_train_ids_are_read_as_they_are(tmp_path: Path) -> None:
    raw = every([*range(19), 255])
    layouts.make_cityscapes(tmp_path, raw, "labelTrainIds")
    assert (truth_of("cityscapes", tmp_path) == np.where(raw == 255, VOID, raw.astype(int))).all()


def coco_present() -> list[str]:
    return [name for name in layouts.COCO_NAMES if not name.startswith("*")]


def test_the_written_out_coco_list_is_whole() -> None:
    assert len(layouts.COCO_NAMES) == 182
    assert len(coco_present()) == 171


def test_coco_stuff_pixel_maps_follow_labels_txt(tmp_path: Path) -> None:
    """A pixel map holds the id minus one; the classes are the present names in order."""
    raw = every([*range(182), 255])
    layouts.make_coco(tmp_path, raw)
    data = open_benchmark("coco_stuff", tmp_path)
    truth = data.samples[0].truth()
    for value, name in enumerate(layouts.COCO_NAMES):
        found = set(truth[raw == value].tolist())
        if name.startswith("*"):
            assert found == {VOID}
        else:
            label = coco_present().index(name)
            assert found == {label}
            assert data.words.classes[label].replace(" ", "") == name.replace(" ", "")
    assert set(truth[raw == 255].tolist()) == {VOID}


def test_coco_object_is_background_but_for_the_80_things(tmp_path: Path) -> None:
    raw = every([*range(182), 255])
    layouts.make_coco(tmp_path, raw)
    data = open_benchmark("coco_object", tmp_path)
    truth = data.samples[0].truth()
    things = [name for name in layouts.COCO_NAMES[:91] if not name.startswith("*")]
    assert len(things) == 80
    for value, name in enumerate(layouts.COCO_NAMES):
        expected = 1 + things.index(name) if name in things and value < 91 else 0
        assert set(truth[raw == value].tolist()) == {expected}
        if expected:
            assert data.words.classes[expected] == name
    assert set(truth[raw == 255].tolist()) == {0}  # unlabeled is background too


def test_coco_label_train_ids(tmp_path: Path) -> None:
    raw = every([*range(171), 255])
    layouts.make_coco(tmp_path, raw, "_labelTrainIds")
    assert (truth_of("coco_stuff", tmp_path) == np.where(raw == 255, VOID, raw.astype(int))).all()
    expected = np.where(raw < 80, raw.astype(int) + 1, 0)
    assert (truth_of("coco_object", tmp_path) == expected).all()


def test_coco_archives_unpacked_without_rearranging(tmp_path: Path) -> None:
    layouts.write_image(tmp_path / "val2017/000000000139.jpg")
    layouts.write_mask(tmp_path / "stuffthingmaps/val2017/000000000139.png", every([0, 181]))
    assert set(truth_of("coco_stuff", tmp_path).ravel().tolist()) == {0, 170}


@pytest.mark.parametrize("home", [".", "VOC2012", "VOCdevkit/VOC2012"])
def test_the_folder_may_be_one_above(tmp_path: Path, home: str) -> None:
    layouts.make_voc(tmp_path / home, {"a": every([0, 1])})
    assert len(open_benchmark("voc21", tmp_path).samples) == 1


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_wrong_folder_says_what_was_expected_and_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "holiday").mkdir()
    with pytest.raises(DataError, match=r"expected .+/.*, found holiday/: .*naclip datasets"):
        open_benchmark(name, tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        open_benchmark(name, tmp_path / "nowhere")


def test_a_missing_mask_is_named(tmp_path: Path) -> None:
    layouts.make_ade(tmp_path, {"ADE_val_1": every([1]), "ADE_val_2": every([1])})
    (tmp_path / "annotations/validation/ADE_val_2.png").unlink()
    with pytest.raises(DataError, match=r"ADE_val_2\.png: no such mask"):
        open_benchmark("ade20k", tmp_path)


def test_values_that_no_class_has_are_an_error_not_void(tmp_path: Path) -> None:
    layouts.make_ade(tmp_path, {"ADE_val_1": every([1, 151])})
    with pytest.raises(DataError, match=r"the value 151: expected 0\.\.150"):
        open_benchmark("ade20k", tmp_path).samples[0].truth()


def test_a_coloured_copy_of_a_mask_is_refused(tmp_path: Path) -> None:
    layouts.make_voc(tmp_path, {"a": every([1])})
    path = tmp_path / "SegmentationClass/a.png"
    Image.open(path).convert("RGB").save(path)
    with pytest.raises(DataError, match="found RGB"):
        open_benchmark("voc21", tmp_path).samples[0].truth()
