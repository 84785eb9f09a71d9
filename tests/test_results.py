"""What a user gets: masks that other programs read back, files whole or not at all, no changes."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from PIL import Image

from naclip.errors import OutputError, SettingsError
from naclip.files import atomic
from naclip.pipeline import Segmenter
from naclip.results import Report, Segmentation, palette
from naclip.settings import Settings


def segmentation(classes: int = 3, background: bool = False) -> Segmentation:
    random = np.random.default_rng(classes)
    labels = random.integers(0, classes, (5, 7)).astype(np.uint8 if classes < 256 else np.uint16)
    labels.ravel()[-1] = classes - 1
    report = Report(
        "tiny", Settings().flat(), True, 4, (336, 470), "fp32", "cpu", "torch", {"image": 0.1}
    )
    return Segmentation(
        labels=labels,
        classes=tuple(f"class {label}" for label in range(classes)),
        scores=random.random((5, 7), dtype=np.float32),
        report=report,
        has_background=background,
        image=random.integers(0, 256, (5, 7, 3), dtype=np.uint8),
        _probabilities_of=lambda labels: np.stack([np.full((5, 7), 0.1 * n) for n in labels]),
    )


@pytest.mark.parametrize(("classes", "mode"), [(2, "P"), (255, "P"), (256, "I;16"), (900, "I;16")])
def test_a_saved_mask_read_by_pillow_equals_the_labels(
    tmp_path: Path, classes: int, mode: str
) -> None:
    result = segmentation(classes)
    path = tmp_path / "mask.png"
    result.save(path)
    with Image.open(path) as image:
        assert image.format == "PNG"
        assert image.mode == mode
        np.testing.assert_array_equal(np.asarray(image), result.labels)
        if mode == "P":
            shown = np.asarray(image.convert("RGB"))
            colours = [tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in result.colours()]
            np.testing.assert_array_equal(shown, np.array(colours)[result.labels])


def test_a_saved_mask_read_by_opencv_equals_the_labels(tmp_path: Path) -> None:
    import cv2

    result = segmentation(900)
    result.save(tmp_path / "mask.png")
    read = cv2.imread(str(tmp_path / "mask.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(read, result.labels)


def test_saved_scores_come_back(tmp_path: Path) -> None:
    result = segmentation()
    result.save_scores(tmp_path / "scores.npz")
    with np.load(tmp_path / "scores.npz") as found:
        np.testing.assert_array_equal(found["labels"], result.labels)
        np.testing.assert_array_equal(found["scores"], result.scores)
        assert tuple(found["classes"]) == result.classes


@pytest.mark.parametrize("suffix", ["png", "jpg", "JPEG", "webp"])
def test_an_overlay_is_the_mean_of_image_and_colours(tmp_path: Path, suffix: str) -> None:
    result = segmentation()
    colours = palette(3, False)[result.labels].astype(float)
    expected = result.image * 0.25 + colours * 0.75
    np.testing.assert_allclose(result.overlay(0.75), expected, atol=0.51)
    path = tmp_path / f"overlay.{suffix}"
    result.save_overlay(path, 0.75)
    with Image.open(path) as image:
        assert image.size == (7, 5)
        if suffix == "png":
            np.testing.assert_array_equal(np.asarray(image), result.overlay(0.75))


def test_impossible_overlays_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"opacity is 1\.5: use a number from 0 to 1"):
        segmentation().overlay(1.5)
    with pytest.raises(SettingsError, match=r"an overlay ends in \.jpg"):
        segmentation().save_overlay(tmp_path / "overlay.gif")
    assert not list(tmp_path.iterdir())


def write_half(path: Path, error: Exception) -> None:
    with atomic(path) as file:
        file.write(b"half")
        raise error


def test_a_failure_leaves_nothing_and_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError):
        write_half(path, ZeroDivisionError())
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    with pytest.raises(OutputError, match=r"mask\.png: cannot be written \(No space left"):
        write_half(path, OSError(28, "No space left on device"))
    assert not list(tmp_path.iterdir())


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    with atomic(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"


def test_a_reader_of_the_file_before_goes_on_reading_that(tmp_path: Path) -> None:
    """The new file takes the place of the old one; it is not written over it."""
    path = tmp_path / "mask.png"
    path.write_bytes(b"before")
    with path.open("rb") as reader:
        segmentation().save(path)
        assert reader.read() == b"before"


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for place in ("nowhere/mask.png", "file/mask.png", "folder", "x" * 300, "no\0where"):
        with pytest.raises(OutputError) as caught:
            segmentation().save(tmp_path / place)
        assert str(caught.value).startswith(str(tmp_path / place))
        assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_long_name_that_fits_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".png")
    segmentation().save(path)
    assert path.is_file()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As /dev/stdout and /dev/null: a rename would put a file in their place."""
    import os

    path = tmp_path / "pipe"
    os.mkfifo(path)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()), daemon=True)
    reader.start()
    segmentation().save(path)
    reader.join(timeout=10)
    assert received[0].startswith(b"\x89PNG")
    assert path.is_fifo()


def test_nothing_in_a_result_can_be_changed() -> None:
    result = segmentation()
    for array in (result.labels, result.scores, result.image):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0
    for holder, field in ((result, "labels"), (result, "classes"), (result.report, "model")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(holder, field, None)


def test_coverage_is_the_share_of_pixels() -> None:
    result = segmentation(4)
    for label, share in enumerate(result.coverage.values()):
        assert share == (result.labels == label).mean()
    assert sum(result.coverage.values()) == pytest.approx(1)


def test_the_legend_is_the_present_classes_largest_first() -> None:
    result = segmentation(20, background=True)
    shares = [share for _, _, share in result.legend()]
    assert shares == sorted(shares, reverse=True)
    assert {name for name, _, _ in result.legend()} == {
        f"class {label}" for label in np.unique(result.labels)
    }
    colours = dict(zip(result.classes, result.colours(), strict=True))
    assert all(colours[name] == colour for name, colour, _ in result.legend())


def test_colours_differ_and_only_a_background_is_black() -> None:
    assert len({tuple(c) for c in palette(200, False)}) == 200
    assert palette(5, True)[0].tolist() == [0, 0, 0]
    assert palette(5, False)[0].any()
    np.testing.assert_array_equal(palette(5, True)[1:], palette(5, False)[1:])
    np.testing.assert_array_equal(palette(5, False), palette(300, False)[:5])


def test_masks_and_heatmaps_are_of_the_named_class() -> None:
    result = segmentation()
    np.testing.assert_array_equal(result.mask("class 2"), result.labels == 2)
    assert result.heatmap("class 2").max() == 0.2
    with pytest.raises(SettingsError, match="no class 'clas 2'; did you mean 'class 2'"):
        result.heatmap("clas 2")


def test_to_dict_is_json_and_says_what_was_done(segmenter: Segmenter) -> None:
    result = segmenter(
        np.zeros((40, 50, 3), np.uint8), ["cat", "dog"], threshold=np.float32(0.1), refine=False
    )
    found: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    assert found["size"] == {"height": 40, "width": 50}
    assert [c["name"] for c in found["classes"]] == ["background", "cat", "dog"]
    assert sum(c["coverage"] for c in found["classes"]) == pytest.approx(1, abs=1e-5)
    assert found["report"]["settings"]["threshold"] == pytest.approx(0.1)
    assert found["report"]["refined"] is False
    assert found["report"]["windows"] == 2 * 3
    assert found["report"]["resized"] == [336, 420]
    assert set(found["report"]["seconds"]) == {"image", "words", "scores", "labels"}


def test_a_mask_is_written_into_an_open_file(tmp_path: Path) -> None:
    result = segmentation()
    with (tmp_path / "open.png").open("wb") as file:
        opened: IO[bytes] = file
        result.write_mask(opened)
    result.save(tmp_path / "saved.png")
    assert (tmp_path / "open.png").read_bytes() == (tmp_path / "saved.png").read_bytes()
