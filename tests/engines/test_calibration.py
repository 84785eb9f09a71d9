"""int8 takes its ranges from images that the user names, and says which: never from chance."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import naclip
from naclip import calibration
from naclip.bulk.worker import ModelChoice
from naclip.cli.main import app
from naclip.errors import ImageError, SettingsError, UsageError
from naclip.synthetic import draw


def scene(seed: int) -> np.ndarray:
    return draw(seed, (96, 96), split="train").image


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for seed in (2, 1):
        Image.fromarray(scene(seed)).save(folder / f"{seed}.png")
    (folder / "notes.txt").write_text("no image")
    return folder


def test_int8_without_images_and_images_without_int8_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"name some that are like yours, --calibrate PHOTOS/"):
        naclip.load("tiny", precision="int8", engine="openvino")
    with pytest.raises(SettingsError, match=r"for precision int8, and this is bf16: leave them"):
        naclip.load("tiny", precision="bf16", calibration=[scene(1)])


def test_a_folder_is_its_images_in_the_order_of_their_names(photos: Path) -> None:
    found = calibration.pictures([photos, scene(3)])
    for picture, seed in zip(found, (1, 2, 3), strict=True):
        np.testing.assert_array_equal(picture.rgb, scene(seed))


def test_a_large_folder_gives_its_first_images(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "MOST", 1)
    assert [Path(found.name).name for found in calibration.pictures([photos])] == ["1.png"]


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"no image to calibrate with \(\.jpg, "):
        calibration.pictures([tmp_path])


def test_the_digest_is_sha256_of_sizes_and_pixels() -> None:
    one, two = calibration.pictures([scene(1), scene(2)])
    expected = hashlib.sha256()
    for picture in (one, two):
        expected.update(b"(96, 96)" + picture.rgb.tobytes())
    assert calibration.digest([one, two]) == expected.hexdigest()
    assert calibration.digest([two, one]) != calibration.digest([one, two])
    assert calibration.digest([]) == ""


def test_the_same_images_give_the_same_labels_in_any_order_of_work(photos: Path) -> None:
    """A resumed run segments other images first: that must not change its ranges."""
    pytest.importorskip("nncf")
    probabilities = []
    for order in ((5, 6), (6, 5)):
        segment = naclip.load("tiny", precision="int8", engine="openvino", calibration=[photos])
        results = {seed: segment(scene(seed), ["grass", "sky", "zebra"]) for seed in order}
        probabilities.append(results[5].scores)
        report = results[5].report
        assert (report.precision, report.engine) == ("int8", "openvino")
        assert report.calibration == calibration.digest(calibration.pictures([photos]))
    np.testing.assert_array_equal(*probabilities)


def test_workers_elsewhere_need_the_images_too(photos: Path) -> None:
    choice = ModelChoice("tiny", precision="int8", engine="openvino")
    with pytest.raises(SettingsError, match="takes its ranges from images"):
        choice.settled("cpu")
    pytest.importorskip("nncf")
    calibrated = ModelChoice("tiny", precision="int8", engine="openvino", calibration=(photos,))
    here, workers = calibrated.settled("cpu")
    assert here.precision == "fp32"  # this process only encodes words
    assert workers.ran_on() == {
        "precision": "int8",
        "device": "cpu",
        "engine": "openvino",
        "calibration": calibration.digest(calibration.pictures([photos])),
    }


def test_a_batch_with_other_calibration_images_is_another_batch(
    photos: Path, tmp_path: Path
) -> None:
    pytest.importorskip("nncf")
    (inputs := tmp_path / "in").mkdir()
    Image.fromarray(scene(9)).save(inputs / "a.png")
    line = ["batch", str(inputs), str(tmp_path / "out"), "--model", "tiny", "-c", "grass,sky"]
    line += ["--precision", "int8", "--engine", "openvino"]
    first = CliRunner().invoke(app, [*line, "--calibrate", str(photos)])
    assert first.exit_code == 0, first.output
    model = json.loads((tmp_path / "out/run.json").read_text())["model"]
    assert model["calibration"] == calibration.digest(calibration.pictures([photos]))
    with pytest.raises(UsageError, match=r"model\.calibration"):
        CliRunner().invoke(
            app, [*line, "--calibrate", str(photos / "1.png")], catch_exceptions=False
        )
