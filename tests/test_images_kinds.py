"""Every kind of image a user may hand over, against the RGB that it shows."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from naclip import images
from naclip.errors import ImageError
from naclip.settings import Windowing

Array8 = NDArray[np.uint8]
HEIGHT, WIDTH = 6, 9
# What each value of the EXIF tag does to the stored picture to show it upright (EXIF 2.3, 0x0112).
UPRIGHT = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: np.rot90,
}


def some_rgb(seed: int = 0) -> Array8:
    return np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def encoded(image: Image.Image, format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=format, **options)
    return buffer.getvalue()


def rgb_of(source: object) -> Array8:
    picture = images.load(source)  # type: ignore[arg-type]
    assert picture.rgb.dtype == np.uint8
    assert picture.rgb.flags.c_contiguous
    return picture.rgb


@pytest.mark.parametrize("format", ["PNG", "BMP", "PPM", "TIFF"])
def test_a_lossless_file_gives_its_pixels(tmp_path: Path, format: str) -> None:
    path = tmp_path / "picture"
    path.write_bytes(encoded(Image.fromarray(some_rgb()), format))
    for source in (path, str(path), path.read_bytes(), bytearray(path.read_bytes())):
        np.testing.assert_array_equal(rgb_of(source), some_rgb())
    assert images.load(path).name == str(path)


def test_pil_numpy_and_torch_give_the_same_pixels() -> None:
    rgb = some_rgb()
    channels_first = torch.from_numpy(rgb).permute(2, 0, 1)
    floats = rgb.astype(np.float64) / 255
    for source in (Image.fromarray(rgb), rgb, channels_first, floats, channels_first / 255):
        np.testing.assert_array_equal(rgb_of(source), rgb)


def test_a_loaded_picture_is_taken_as_it_is() -> None:
    picture = images.load(some_rgb())
    assert images.load(picture) is picture


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_exif_orientation_is_undone_as_the_standard_says(orientation: int) -> None:
    stored = some_rgb()
    exif = Image.Exif()
    exif[0x0112] = orientation
    for format in ("PNG", "TIFF"):
        data = encoded(Image.fromarray(stored), format, exif=exif)
        np.testing.assert_array_equal(rgb_of(data), UPRIGHT[orientation](stored))


def test_grey_becomes_three_equal_channels() -> None:
    grey = some_rgb()[..., 0]
    expected = np.repeat(grey[..., None], 3, axis=-1)
    for source in (grey, grey[..., None], torch.from_numpy(grey), torch.from_numpy(grey)[None]):
        np.testing.assert_array_equal(rgb_of(source), expected)
    np.testing.assert_array_equal(rgb_of(Image.fromarray(grey)), expected)


@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
def test_16_bits_are_scaled_to_8_from_every_door(dtype: str) -> None:
    values = np.array([[0, 1, 128, 129, 32768, 65407, 65408, 65535]], dtype=dtype)
    expected = np.round(values.astype(float) / 65535 * 255)[..., None].repeat(3, axis=-1)
    np.testing.assert_array_equal(rgb_of(values), expected)
    mode = "I;16B" if dtype == ">u2" else "I;16"
    image = Image.frombytes(mode, (8, 1), values.tobytes())
    np.testing.assert_array_equal(rgb_of(image), expected)
    np.testing.assert_array_equal(rgb_of(encoded(image, "TIFF")), expected)
    if mode == "I;16":
        np.testing.assert_array_equal(rgb_of(encoded(image, "PNG")), expected)
    as_32_bits = Image.fromarray(values.astype(np.int32))
    assert as_32_bits.mode == "I"
    np.testing.assert_array_equal(rgb_of(as_32_bits), expected)


def test_float_images_hold_0_to_1() -> None:
    values = np.linspace(0, 1, WIDTH, dtype=np.float32)[None]
    expected = np.floor(values * 255 + 0.5)[..., None].repeat(3, axis=-1)
    np.testing.assert_array_equal(rgb_of(values), expected)
    np.testing.assert_array_equal(rgb_of(Image.fromarray(values)), expected)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert np.abs(rgb_of(torch.from_numpy(values).to(dtype)).astype(int) - expected).max() <= 1
    assert np.abs(rgb_of(values.astype(np.float16)).astype(int) - expected).max() <= 1
    np.testing.assert_array_equal(rgb_of(values.astype(">f4")), expected)


def test_one_bit_is_black_and_white() -> None:
    bits = some_rgb()[..., 0] > 127
    expected = (bits * 255)[..., None].repeat(3, axis=-1)
    for source in (bits, torch.from_numpy(bits), Image.fromarray(bits)):
        np.testing.assert_array_equal(rgb_of(source), expected)
    np.testing.assert_array_equal(rgb_of(encoded(Image.fromarray(bits), "PNG")), expected)


def over_white(rgb: Array8, alpha: Array8) -> NDArray[np.float64]:
    share = alpha[..., None] / 255
    return np.round(rgb * share + 255 * (1 - share))


def test_alpha_is_laid_over_white_and_noted() -> None:
    rgb, alpha = some_rgb(), some_rgb(1)[..., 0]
    rgba = np.dstack([rgb, alpha])
    image = Image.fromarray(rgba)
    sources = (rgba, torch.from_numpy(rgba).permute(2, 0, 1), image, encoded(image, "PNG"))
    for source in sources:
        picture = images.load(source)
        np.testing.assert_array_equal(picture.rgb, over_white(rgb, alpha))
        assert picture.notes == ("transparent parts over white",)


def test_grey_with_alpha_is_laid_over_white() -> None:
    grey, alpha = some_rgb()[..., 0], some_rgb(1)[..., 0]
    image = Image.merge("LA", [Image.fromarray(grey), Image.fromarray(alpha)])
    expected = over_white(grey[..., None].repeat(3, axis=-1), alpha)
    for source in (image, encoded(image, "PNG")):
        np.testing.assert_array_equal(rgb_of(source), expected)


def test_a_palette_with_and_without_transparency() -> None:
    image = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8))
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    red, green, blue, white = [255, 0, 0], [0, 255, 0], [0, 0, 255], [255] * 3
    assert rgb_of(encoded(image, "PNG")).tolist() == [[red, green, blue]]
    assert rgb_of(encoded(image, "PNG", transparency=1)).tolist() == [[red, white, blue]]
    assert rgb_of(encoded(image, "GIF", transparency=2)).tolist() == [[red, green, white]]


def test_cmyk_is_what_pillow_shows() -> None:
    cmyk = Image.fromarray(some_rgb()).convert("CMYK")
    np.testing.assert_array_equal(rgb_of(cmyk), np.asarray(cmyk.convert("RGB")))
    np.testing.assert_array_equal(rgb_of(encoded(cmyk, "TIFF")), some_rgb())


def test_other_modes_of_pillow_are_what_it_shows() -> None:
    for mode in ("YCbCr", "LAB", "HSV"):
        image = Image.fromarray(some_rgb()).convert(mode)
        np.testing.assert_array_equal(rgb_of(image), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_frame_of_an_animation_is_taken_and_noted(format: str) -> None:
    frames = [Image.new("RGB", (WIDTH, HEIGHT), colour) for colour in ("red", "lime", "blue")]
    options = {"lossless": True} if format == "WEBP" else {}
    data = encoded(frames[0], format, save_all=True, append_images=frames[1:], **options)
    picture = images.load(data)
    assert (picture.rgb == (255, 0, 0)).all()
    assert picture.notes == ("first of 3 frames",)


@pytest.mark.parametrize("format", ["GIF", "TIFF"])
def test_frames_of_large_files_are_not_counted(format: str) -> None:
    """Counting is going through the file: 2 MB of empty TIFF frames took 10 s."""
    frames = [Image.new("RGB", (8, 8), (n % 256, n // 256, 9)) for n in range(1500)]
    data = encoded(frames[0], format, save_all=True, append_images=frames[1:])
    assert len(data) > images.WALKED_BYTES
    assert images.load(data).notes == ("first of several frames",)


def test_a_phones_mpo_is_a_plain_photo() -> None:
    """Two views in one JPEG: the first is the picture, and that is not worth a note."""
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "MPO", save_all=True, append_images=frames[1:])
    picture = images.load(data)
    assert np.abs(picture.rgb.astype(int) - (255, 0, 0)).max() < 3
    assert picture.notes == ()


def test_a_picture_does_not_change_when_the_users_array_does() -> None:
    rgb = some_rgb()
    picture = images.load(rgb)
    rgb[:] = 0
    np.testing.assert_array_equal(picture.rgb, some_rgb())
    tensor = torch.from_numpy(some_rgb()).permute(2, 0, 1).contiguous()
    picture = images.load(tensor)
    tensor.zero_()
    np.testing.assert_array_equal(picture.rgb, some_rgb())


def test_a_tensor_that_requires_grad_is_an_image_too() -> None:
    tensor = (torch.from_numpy(some_rgb()).permute(2, 0, 1) / 255).requires_grad_()
    np.testing.assert_array_equal(rgb_of(tensor), some_rgb())


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((300, 451), (336, 505)),  # chelsea: 505.12
        ((250, 375), (336, 504)),
        ((1, 1), (336, 336)),
        ((1000, 10_000), (205, 2048)),  # the long side binds
        ((3000, 4000), (336, 448)),
    ],
)
def test_resized_size_matches_mmcvs_rescale(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert images.resized_size(*size, Windowing()) == expected


def test_prepare_resizes_as_opencv_and_normalises_by_hand() -> None:
    import cv2

    picture = images.load(some_rgb())
    mean, std = (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)
    ours = images.prepare(picture, Windowing(20), mean, std, smallest=4)
    resized = cv2.resize(some_rgb(), (30, 20), interpolation=cv2.INTER_LINEAR)
    theirs = resized.transpose(2, 0, 1) - np.array(mean)[:, None, None]
    theirs /= np.array(std)[:, None, None]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_an_image_narrower_than_a_patch_says_what_to_do() -> None:
    picture = images.load(np.zeros((10, 2000, 3), dtype=np.uint8))
    with pytest.raises(ImageError, match=r"2000x10 and would be resized to 2048x10, narrower than"):
        images.prepare(picture, Windowing(), (0.0,) * 3, (1.0,) * 3, smallest=16)
