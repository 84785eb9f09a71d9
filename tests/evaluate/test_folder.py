"""A user's own images and masks: indices, colours, COCO instances and panoptic maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from naclip.errors import DataError
from naclip.evaluate.datasets import DataSet
from naclip.evaluate.folder import open_folder
from naclip.settings import Settings

from .layouts import VOID, every, write_image, write_mask

CLASSES = "cat\nsofa, couch\n"


def opened(root: Path) -> DataSet:
    return open_folder(root, Settings())


def make(root: Path, mask: np.ndarray, classes: str = CLASSES, file: str = "classes.txt") -> Path:
    write_image(root / "images/deep/one.jpg", *mask.shape[:2])
    path = root / "masks/deep/one.png"
    path.parent.mkdir(parents=True)
    Image.fromarray(mask.astype(np.uint8)).save(path)
    (root / file).write_text(classes)
    return root


def test_indices_in_the_order_of_the_class_file(tmp_path: Path) -> None:
    data = opened(make(tmp_path, every([0, 1, 255], 3, 3)))
    assert data.words.names == (("cat",), ("sofa", "couch"))
    assert data.samples[0].name == "deep/one"
    assert data.samples[0].truth().tolist() == [[0, 1, VOID]] * 3


def test_numbers_of_the_users_own(tmp_path: Path) -> None:
    text = 'void = [0, 9]\n[values]\ncat = 7\nsofa = 3\n[classes]\ncat = ["cat"]\nsofa = ["sofa"]\n'
    data = opened(make(tmp_path, every([0, 3, 7, 9], 2, 2), text, "classes.toml"))
    assert data.samples[0].truth().ravel().tolist() == [VOID, 1, 0, VOID]


def test_colours(tmp_path: Path) -> None:
    text = (
        'void = ["#000000"]\n[values]\ncat = "#ff0000"\nsofa = "#00FF80"\n'
        '[classes]\ncat = ["cat"]\nsofa = ["sofa"]\n'
    )
    mask = np.array([[[255, 0, 0], [0, 255, 128], [0, 0, 0]]], np.uint8)
    data = opened(make(tmp_path, mask, text, "classes.toml"))
    assert data.samples[0].truth().tolist() == [[0, 1, VOID]]
    Image.fromarray(np.full((1, 3, 3), 7, np.uint8)).save(tmp_path / "masks/deep/one.png")
    with pytest.raises(DataError, match="#070707: no class or void has this colour"):
        data.samples[0].truth()


def test_a_value_without_a_class_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the value 5: expected a class's number"):
        opened(make(tmp_path, every([0, 5]))).samples[0].truth()


def test_a_misspelt_class_of_values_suggests(tmp_path: Path) -> None:
    text = '[values]\ncta = 7\n[classes]\ncat = ["cat"]\n'
    with pytest.raises(DataError, match="did you mean 'cat'"):
        opened(make(tmp_path, every([0]), text, "classes.toml"))


def test_an_empty_folder_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected images/, masks/ .* found nothing"):
        opened(tmp_path)


def make_coco(root: Path, annotations: list[dict[str, Any]], classes: str | None) -> Path:
    write_image(root / "images/1.jpg", 4, 5)
    table = {
        "images": [{"id": 1, "file_name": "1.jpg", "height": 4, "width": 5}],
        "categories": [{"id": 3, "name": "Cat"}, {"id": 8, "name": "couch"}],
        "annotations": annotations,
    }
    (root / "annotations.json").write_text(json.dumps(table))
    if classes is not None:
        (root / "classes.txt").write_text(classes)
    return root


def test_instances_as_polygons_cover_the_pixels_whose_centres_are_inside(tmp_path: Path) -> None:
    square = {"image_id": 1, "category_id": 3, "segmentation": [[1, 1, 4, 1, 4, 3, 1, 3]]}
    truth = opened(make_coco(tmp_path, [square], CLASSES)).samples[0].truth()
    expected = np.full((4, 5), VOID)
    expected[1:3, 1:4] = 0
    assert (truth == expected).all()


def test_the_smaller_instance_is_on_top_and_couch_is_a_name_of_sofa(tmp_path: Path) -> None:
    everything = [[0, 0, 5, 0, 5, 4, 0, 4]]
    annotations = [
        {"image_id": 1, "category_id": 3, "area": 4, "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]},
        {"image_id": 1, "category_id": 8, "area": 20, "segmentation": everything},
    ]
    truth = opened(make_coco(tmp_path, annotations, CLASSES)).samples[0].truth()
    expected = np.ones((4, 5))
    expected[:2, :2] = 0
    assert (truth == expected).all()


# Column by column 4x5 pixels: 5 outside, 2 inside, 13 outside. Compressed by hand: a run takes 5
# bits a character from 48 on; the fourth run and on are differences to the run before the last.
@pytest.mark.parametrize("counts", [[5, 2, 13], "52="])
def test_run_lengths_go_down_the_columns(tmp_path: Path, counts: Any) -> None:
    item = {"image_id": 1, "category_id": 3, "segmentation": {"counts": counts, "size": [4, 5]}}
    truth = opened(make_coco(tmp_path, [item], CLASSES)).samples[0].truth()
    expected = np.full((4, 5), VOID)
    expected[1:3, 1] = 0
    assert (truth == expected).all()


def test_compressed_runs_of_several_characters_and_differences(tmp_path: Path) -> None:
    """Runs 3, 1, 2, 4, 10: the fourth is 1 + 3, the fifth 2 + 8, as the format has it."""
    item = {"image_id": 1, "category_id": 3, "segmentation": {"counts": "31238"}}
    truth = opened(make_coco(tmp_path, [item], CLASSES)).samples[0].truth()
    flat = truth.T.ravel()
    assert np.flatnonzero(flat == 0).tolist() == [3, 6, 7, 8, 9]


def test_panoptic_map(tmp_path: Path) -> None:
    segments = [{"id": 1 + 256 * 2, "category_id": 8}, {"id": 65536, "category_id": 99}]
    root = make_coco(
        tmp_path, [{"image_id": 1, "file_name": "1.png", "segments_info": segments}], CLASSES
    )
    rgb = np.zeros((4, 5, 3), np.uint8)
    rgb[0] = (1, 2, 0)
    rgb[1] = (0, 0, 1)  # a category that is not a class
    (root / "masks").mkdir()
    Image.fromarray(rgb).save(root / "masks/1.png")
    truth = opened(root).samples[0].truth()
    assert set(truth[0].tolist()) == {1}
    assert set(truth[1:].ravel().tolist()) == {VOID}


def test_categories_are_the_classes_where_there_is_no_class_file(tmp_path: Path) -> None:
    data = opened(make_coco(tmp_path, [], None))
    assert data.words.classes == ("Cat", "couch")


def test_categories_that_match_no_class_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of its categories"):
        opened(make_coco(tmp_path, [], "dog\nhorse\n"))


def test_two_images_for_one_mask(tmp_path: Path) -> None:
    make(tmp_path, every([0]))
    write_image(tmp_path / "images/deep/one.png")
    write_mask(tmp_path / "masks/deep/one.png", every([0]))
    with pytest.raises(DataError, match="a second image named deep/one"):
        opened(tmp_path)


SQUARE = [[0, 0, 2, 0, 2, 2, 0, 2]]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ({"category_id": 3, "bbox": [0, 0, 2, 2]}, "image 1 has no segmentation"),
        ({"category_id": 3, "segmentation": []}, "image 1 has no segmentation"),
        ({"segmentation": SQUARE}, "image 1 has no category_id"),
        ({"category_id": 3, "segmentation": [[1, 1, 2]]}, "neither polygons .* nor run lengths"),
        ({"category_id": 3, "segmentation": [["a", 1]]}, "neither polygons .* nor run lengths"),
        ({"category_id": 3, "segmentation": {"size": [4, 5]}}, "neither polygons"),
        ({"segments_info": [{"id": 1, "category_id": 3}]}, "no file_name of its panoptic map"),
        ({"segments_info": [{"category_id": 3}], "file_name": "1.png"}, "has no id"),
    ],
)
def test_annotations_that_are_no_masks_are_refused_before_the_run(
    tmp_path: Path, annotation: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        opened(make_coco(tmp_path, [{"image_id": 1, **annotation}], CLASSES))


def test_run_lengths_of_another_size_are_an_error(tmp_path: Path) -> None:
    for counts in ([5, 2], [30, -10], "!!"):
        item = {"image_id": 1, "category_id": 3, "segmentation": {"counts": counts}}
        with pytest.raises(DataError, match="expected those of its 5x4"):
            opened(make_coco(tmp_path, [item], CLASSES)).samples[0].truth()


@pytest.mark.parametrize("area", [{}, {"area": 0}])
def test_the_smaller_instance_is_on_top_where_the_file_has_no_areas(
    tmp_path: Path, area: dict[str, int]
) -> None:
    """By polygons and by run lengths alike: 4 pixels over 20."""
    runs = {"counts": [0, 2, 2, 2, 14], "size": [4, 5]}
    for small in (SQUARE, runs):
        annotations = [
            {"image_id": 1, "category_id": 3, "segmentation": small, **area},
            {"image_id": 1, "category_id": 8, "segmentation": [[0, 0, 5, 0, 5, 4, 0, 4]], **area},
        ]
        truth = opened(make_coco(tmp_path, annotations, CLASSES)).samples[0].truth()
        expected = np.ones((4, 5))
        expected[:2, :2] = 0
        assert (truth == expected).all()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "lists no images"),
        ([{"id": 1, "file_name": "1.jpg"}], "expected COCO's images"),
        ([{"id": 1, "file_name": "2.jpg", "height": 4, "width": 5}], r"2\.jpg: no such file"),
        (
            [
                {"id": i, "file_name": f"1.{s}", "height": 4, "width": 5}
                for i, s in ((1, "jpg"), (2, "png"))
            ],
            "two images named 1",
        ),
    ],
)
def test_lists_of_images_that_cannot_be_used(
    tmp_path: Path, images: list[dict[str, Any]], message: str
) -> None:
    root = make_coco(tmp_path, [], CLASSES)
    write_image(root / "images/1.png", 4, 5)
    table = json.loads((root / "annotations.json").read_text())
    (root / "annotations.json").write_text(json.dumps({**table, "images": images}))
    with pytest.raises(DataError, match=message):
        opened(root)


def test_a_mask_of_one_bit_a_pixel_is_a_mask_of_0_and_1(tmp_path: Path) -> None:
    root = make(tmp_path, every([0]))
    Image.fromarray(np.array([[False, True]])).save(root / "masks/deep/one.png")
    assert opened(root).samples[0].truth().tolist() == [[0, 1]]


def test_a_mask_of_colours_without_their_meaning_says_where_to_write_it(tmp_path: Path) -> None:
    root = make(tmp_path, np.zeros((2, 2, 3)))
    with pytest.raises(DataError, match=r"found RGB: .*\[values\] in classes\.toml"):
        opened(root).samples[0].truth()


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("void = 255", "expected void as a list"),
        ("values = [7]", r"\[values\] as a table"),
        ("[values]\ncat = 7\nsofa = 7", "7 stands for two things"),
        ("void = [7]\n[values]\ncat = 7\nsofa = 8", "7 stands for two things"),
        ('void = ["#FF0000"]\n[values]\ncat = "#ff0000"', "'#ff0000' stands for two things"),
    ],
)
def test_values_that_mean_two_things_or_nothing(tmp_path: Path, head: str, message: str) -> None:
    text = f'{head}\n[classes]\ncat = ["cat"]\nsofa = ["sofa"]\n'
    with pytest.raises(DataError, match=message):
        opened(make(tmp_path, every([0]), text, "classes.toml"))
