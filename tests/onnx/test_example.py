"""examples/onnx_segment.py in a process of its own, as its readers run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from naclip.cli.main import app
from naclip.pipeline import load
from naclip.synthetic import draw

from ..recorded import recorded_file, recorded_of
from .conftest import TINY_WORDS

EXAMPLE = Path(__file__).parents[2] / "examples/onnx_segment.py"
MARGIN, AGREEMENT = 2e-3, 0.999  # tests/parity/README.md
BLOCKED = "import sys; sys.modules |= dict.fromkeys({blocked!r}); sys.argv = sys.argv[1:]; "
RUN = "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"


def mask_of(folder: Path, image: Path, mask: Path, *words: str) -> NDArray[np.uint8]:
    """With naclip and torch impossible to import; without words tokenizers, too."""
    blocked = ["naclip", "torch", "cv2", *([] if words else ["tokenizers"])]
    program = BLOCKED.format(blocked=blocked) + RUN
    command = [sys.executable, "-c", program, str(EXAMPLE), folder, image, mask, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.array(Image.open(mask))


def assert_equal_where_clear(
    found: NDArray[np.generic], labels: NDArray[np.generic], margin: NDArray[np.floating]
) -> None:
    differs = found != labels
    assert not differs[margin > MARGIN].any()
    assert 1 - differs.mean() >= AGREEMENT


@pytest.mark.parametrize("image", ["chelsea", "coffee"])
def test_mask_of_a_parity_image_is_that_of_the_program(
    recorded_export: Path, tmp_path: Path, image: str
) -> None:
    answers = recorded_of("e2e", "context60", image)
    found = mask_of(recorded_export, recorded_file(f"{image}.png"), tmp_path / "mask.png")
    assert_equal_where_clear(found, answers["labels_raw"], answers["margin_raw"].astype(np.float32))


@pytest.mark.parametrize("words", [(), TINY_WORDS], ids=["written", "encoded"])
def test_mask_is_that_of_naclip_segment_with_the_tiny_model(
    tiny_export: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    photo, ours = tmp_path / "photo.png", tmp_path / "ours.png"
    Image.fromarray(draw(5, (96, 128), scale=2).image).save(photo)
    asked = [part for word in TINY_WORDS for part in ("-c", word)]
    command = ["segment", str(photo), "-m", "tiny", *asked, "--no-refine", "-o", str(ours)]
    app(command, standalone_mode=False)
    result = load("tiny")(photo, TINY_WORDS, refine=False)
    second, best = np.sort(result.probabilities(), axis=0)[-2:]
    found = mask_of(tiny_export, photo, tmp_path / "mask.png", *words)
    assert len(np.unique(found)) > 1
    assert_equal_where_clear(found, np.array(Image.open(ours)), best - second)


def test_an_image_narrower_than_a_window_is_refused(tiny_export: Path, tmp_path: Path) -> None:
    """long_side 2048: 5000x100 is resized to 2048x41, and the window is 64."""
    photo = tmp_path / "panorama.png"
    Image.new("RGB", (5000, 100)).save(photo)
    with pytest.raises(AssertionError, match="narrower than a window"):
        mask_of(tiny_export, photo, tmp_path / "mask.png")
