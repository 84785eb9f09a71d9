"""Files and arrays that are no images, or not whole: one line that names the file, or a picture."""

from __future__ import annotations

import io
import os
import random
import struct
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from naclip import images
from naclip.errors import ImageError, OutOfMemoryError

from .recorded import recorded_file
from .test_images_kinds import encoded, some_rgb

ANY_FORMAT = ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "PPM", "JPEG2000"]


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(ImageError) as caught:
        images.load(source, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def png_that_announces(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    pixels = chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.png"
    assert refusal(path) == f"{path}: no such file"


def test_a_folder_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        f"{tmp_path}: is a folder, expected an image: naclip batch takes folders"
    )


def test_a_file_without_end_is_refused_before_memory_runs_out() -> None:
    text = refusal("/dev/zero", max_pixels=1000)
    assert text.startswith("/dev/zero: more than 67,116,864 bytes, which no image")


def test_an_image_may_come_through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = recorded_file("chelsea.png").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=[data])
    writer.start()
    assert images.load(pipe).size == (300, 451)
    writer.join()


def test_memory_that_runs_out_while_an_image_is_decoded_is_not_called_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", fail)
    with pytest.raises(OutOfMemoryError, match=r"chelsea\.png: out of memory: use a smaller"):
        images.load(recorded_file("chelsea.png"))


def test_a_path_that_no_file_can_have_is_refused() -> None:
    assert "no\\x00where" in refusal("no\0where.png")
    assert "name too long" in refusal("x" * 5000)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "empty.png"
    path.touch()
    assert refusal(path) == f"{path}: the file is empty"
    assert refusal(b"") == "image bytes: the file is empty"


def test_a_text_file_is_no_image(tmp_path: Path) -> None:
    path = tmp_path / "notes.jpg"
    path.write_text("not an image at all\n" * 100)
    assert refusal(path).startswith(f"{path}: not an image of a known format (PNG, JPEG")


def test_formats_that_run_programs_are_not_tried() -> None:
    """Pillow would hand PostScript to Ghostscript."""
    assert "not an image" in refusal(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")


@pytest.mark.parametrize(("width", "height"), [(50_000, 50_000), (12_000, 12_000)])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(
    tmp_path: Path, width: int, height: int
) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png_that_announces(width, height))
    text = refusal(path)
    assert text.startswith(f"{path}")
    assert "100,000,000" in text


def test_the_limit_of_pixels_can_be_chosen() -> None:
    assert "9x6, 54 pixels: the limit is 53" in refusal(some_rgb(), max_pixels=53)
    assert images.load(some_rgb(), max_pixels=54).size == (6, 9)


def test_beyond_pillows_own_limit_the_message_says_how_to_lift_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 89_478_485)  # Pillow's; libraries lift it
    bomb = refusal(png_that_announces(50_000, 50_000), max_pixels=10**12)
    assert "the limit of 178,956,970, Pillow's own: PIL.Image.MAX_IMAGE_PIXELS = None" in bomb
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    data = encoded(Image.fromarray(some_rgb()), "PNG")
    assert "the limit of 20, Pillow's own" in refusal(data)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert images.load(data).size == (6, 9)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ANY_FORMAT), st.floats(0, 1))
def test_a_truncated_file_is_an_image_error_or_a_picture(format: str, where: float) -> None:
    data = encoded(Image.fromarray(some_rgb().repeat(9, 0).repeat(9, 1)), format)
    load_anything(data[: int(len(data) * where)])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ANY_FORMAT), st.integers(0, 10**6), st.integers(1, 12))
def test_damaged_bytes_are_an_image_error_or_a_picture(format: str, seed: int, count: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    options = {"exif": exif} if format in ("PNG", "JPEG", "WEBP", "TIFF") else {}
    data = bytearray(encoded(Image.fromarray(some_rgb()), format, **options))
    dice = random.Random(seed)
    for _ in range(count):
        data[dice.randrange(len(data))] = dice.randrange(256)
    load_anything(bytes(data), max_pixels=10_000_000)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["", "\x89PNG\r\n\x1a\n", "II*\0", "GIF89a", "BM"]))
def test_noise_is_an_image_error_or_a_picture(noise: bytes, start: str) -> None:
    load_anything(start.encode("latin-1") + noise, max_pixels=10_000_000)


def load_anything(data: bytes, **options: Any) -> None:
    try:
        picture = images.load(data, **options)
    except ImageError as error:
        text = str(error)
    else:
        text = picture.name
        assert picture.rgb.ndim == 3
    assert text.startswith("image bytes")
    assert "\n" not in text


def test_a_truncated_photo_is_named(tmp_path: Path) -> None:
    path = tmp_path / "half.png"
    data = recorded_file("chelsea.png").read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert refusal(path).startswith(f"{path}: damaged or truncated image (")


def test_a_truncated_photo_that_pillow_opened_is_refused_too() -> None:
    data = recorded_file("coffee.png").read_bytes()
    assert "image: damaged or truncated" in refusal(Image.open(io.BytesIO(data[: len(data) // 2])))


def test_pixels_that_do_not_exist_are_refused() -> None:
    assert "0x4: it has no pixels" in refusal(np.zeros((4, 0, 3), np.uint8))
    assert "4x0: it has no pixels" in refusal(np.zeros((0, 4), np.uint8))
    assert "0x0: it has no pixels" in refusal(Image.new("RGB", (0, 0)))
    assert "no pixels" in refusal(torch.zeros(3, 0, 5))


@pytest.mark.parametrize("shape", [(5,), (), (3, 4, 5), (4, 5, 2), (1, 3, 4, 5)])
def test_shapes_that_are_no_image_say_what_is_expected(shape: tuple[int, ...]) -> None:
    text = refusal(np.zeros(shape, np.uint8))
    assert f"shape {shape}: expected height x width with 1, 3 or 4 channels" in text
    assert "shape" in refusal(torch.zeros(7, 4, 5))


def test_floats_that_are_no_image_say_what_is_expected() -> None:
    for bad in (np.nan, np.inf, -np.inf):
        values = np.zeros((4, 5, 3))
        values[1, 2, 0] = bad
        assert refusal(values) == "array holds NaN or infinite values: expected floats in 0..1"
    assert refusal(np.full((4, 5), 255.0)).startswith(
        "array holds floats from 255 to 255: expected"
    )
    assert refusal(torch.full((4, 5), -0.1)).startswith("tensor holds floats from -0.1 to -0.1")
    assert "NaN" in refusal(Image.fromarray(np.full((2, 2), np.nan, np.float32)))


@pytest.mark.parametrize("dtype", ["int64", "int8", "complex64", "object", "U1", "datetime64[s]"])
def test_dtypes_that_are_no_image_say_what_is_expected(dtype: str) -> None:
    text = refusal(np.zeros((4, 5, 3), dtype=dtype))
    assert "use uint8, uint16, bool or floats in 0..1" in text


def test_tensors_that_numpy_cannot_hold_are_refused() -> None:
    assert refusal(torch.zeros(3, 4, 5, dtype=torch.complex64)).startswith("tensor holds complex64")
    assert "tensor" in refusal(torch.zeros(3, 4, 5).to_sparse())
    assert "tensor" in refusal(torch.zeros(3, 4, 5, device="meta"))


@pytest.mark.parametrize("source", [None, 5, ["a.png"], {"image": 1}, object()])
def test_other_objects_say_what_to_give(source: object) -> None:
    assert "use a path, bytes, a PIL image, a numpy array or a torch tensor" in refusal(source)
