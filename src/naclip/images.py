"""Any image a user may hand over -> upright RGB uint8 -> the resized, normalised pixels.

Files are hostile until proven otherwise: only plain raster formats are tried, and a file that
announces more pixels than the limit is refused before it is decoded.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from naclip.errors import ImageError, OutOfMemoryError
from naclip.settings import Windowing

if TYPE_CHECKING:
    import torch
    from PIL import Image

    ImageSource: TypeAlias = (
        "str | os.PathLike[str] | bytes | Image.Image | NDArray[Any] | torch.Tensor | Picture"
    )

WALKED = ("GIF", "TIFF")  # formats whose frames are counted by going through the whole file
WALKED_BYTES = 32_000  # only through small ones: a hostile file has a million empty frames
FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "PPM", "AVIF", "JPEG2000")
MAX_PIXELS = 100_000_000
Array8: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True)
class Picture:
    """An upright RGB image and what had to be decided to get it."""

    rgb: Array8  # (H, W, 3)
    name: str
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        return self.rgb.shape[0], self.rgb.shape[1]


def load(source: ImageSource, max_pixels: int = MAX_PIXELS) -> Picture:
    """Path, bytes, PIL image, array (H, W[, 1|3|4]) or tensor ([1|3|4,] H, W) -> Picture."""
    if isinstance(source, Picture):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _from_file(Path(source), max_pixels)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _from_bytes(bytes(source), "image bytes", max_pixels)
    if isinstance(source, np.ndarray):
        return _from_array(source, "array", max_pixels)
    if hasattr(source, "detach"):  # a torch tensor, told apart without importing torch
        return _from_tensor(source, max_pixels)
    if hasattr(source, "convert"):
        name = str(getattr(source, "filename", "") or "image")
        with _damage(name, max_pixels):  # Pillow decodes when the pixels are first asked for
            return _from_pil(source, name, max_pixels)
    raise ImageError(
        f"cannot read an image from {type(source).__name__}: "
        "use a path, bytes, a PIL image, a numpy array or a torch tensor"
    )


def _from_file(path: Path, max_pixels: int) -> Picture:
    try:
        data = _contents(path, 8 * max_pixels + (1 << 26))  # 8 bytes: 16 bits of RGBA
    except FileNotFoundError:
        raise ImageError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ImageError(
            f"{path}: is a folder, expected an image: naclip batch takes folders"
        ) from None
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:  # a path that no file can have
        raise ImageError(f"{str(path)!r}: {error}") from None
    return _from_bytes(data, str(path), max_pixels)


def _contents(path: Path, limit: int) -> bytes:
    """All of a file or a pipe; one that is endless, like /dev/zero, is refused in time."""
    data = bytearray()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            data += chunk
            if len(data) > limit:
                raise ImageError(
                    f"{path}: more than {limit:,} bytes, which no image within the limit of pixels "
                    "has: make it smaller or raise max_pixels"
                )
    return bytes(data)


def _from_bytes(data: bytes, name: str, max_pixels: int) -> Picture:
    from PIL import Image

    Image.init()
    formats = [name for name in FORMATS if name in Image.OPEN]  # builds of Pillow differ
    if not data:
        raise ImageError(f"{name}: the file is empty")
    with _damage(name, max_pixels), Image.open(io.BytesIO(data), formats=formats) as image:
        return _from_pil(image, name, max_pixels, len(data))


@contextmanager
def _damage(name: str, max_pixels: int) -> Iterator[None]:
    """Whatever Pillow raises over a file's contents, as one line that names the file."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Of a large image (our own limit is stricter, and an error) and of odd metadata.
            warnings.filterwarnings("ignore", module=r"PIL\.")
            yield
    except ImageError:
        raise
    except MemoryError:
        raise OutOfMemoryError(f"{name}: out of memory: use a smaller image") from None
    except UnidentifiedImageError:
        known = ", ".join(name for name in FORMATS if name in Image.OPEN)
        raise ImageError(f"{name}: not an image of a known format ({known})") from None
    except Image.DecompressionBombError:
        pillows = 2 * (Image.MAX_IMAGE_PIXELS or max_pixels)
        why = ", Pillow's own: PIL.Image.MAX_IMAGE_PIXELS = None lifts it"
        raise ImageError(
            f"{name}: more pixels than the limit of {min(max_pixels, pillows):,}"
            f"{why if pillows < max_pixels else ''}"
        ) from None
    except Exception as error:  # decoders of hostile bytes: struct.error, KeyError, anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"{name}: damaged or truncated image ({reason})") from None


def _from_tensor(source: Any, max_pixels: int) -> Picture:
    """Channels first, as torch has them."""
    try:
        tensor: torch.Tensor = source.detach().cpu()
        array = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:  # sparse, meta, ...
        reason = " ".join(str(error).split())[:80]
        raise ImageError(f"tensor cannot be read as an image ({reason})") from None
    array = np.moveaxis(array, 0, -1) if array.ndim == 3 else array
    return _from_array(array, "tensor", max_pixels)


def _from_pil(image: Image.Image, name: str, max_pixels: int, file_bytes: int = 0) -> Picture:
    from PIL import ImageOps

    check_size(image.height, image.width, name, max_pixels)
    notes: tuple[str, ...] = ()
    if getattr(image, "is_animated", False) and image.format != "MPO":
        many = image.format in WALKED and file_bytes > WALKED_BYTES
        notes = (f"first of {'several' if many else getattr(image, 'n_frames', 1)} frames",)
    upright = ImageOps.exif_transpose(image)
    if upright.mode in ("I;16", "I;16B", "I;16L", "I;16N", "I", "F"):
        values = np.asarray(upright)
        # Pillow reads 16-bit greys of some formats as 32-bit integers.
        is_16_bit = upright.mode == "I" and values.min() >= 0 and values.max() <= 0xFFFF
        values = values.astype(np.uint16) if is_16_bit else values
        return Picture(_from_array(values, name, max_pixels).rgb, name, notes)
    if upright.has_transparency_data:
        rgba = np.asarray(upright.convert("RGBA"))
        return Picture(_over_white(rgba), name, (*notes, "transparent parts over white"))
    return Picture(np.ascontiguousarray(upright.convert("RGB")), name, notes)


def _from_array(array: NDArray[Any], name: str, max_pixels: int) -> Picture:
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[-1] not in (1, 3, 4):
        raise ImageError(
            f"{name} has shape {array.shape}: expected height x width with 1, 3 or 4 channels "
            "(channels first for torch)"
        )
    check_size(array.shape[0], array.shape[1], name, max_pixels)
    array = _to_8_bit(array, name)
    if array.shape[-1] == 4:
        return Picture(_over_white(array), name, ("transparent parts over white",))
    return Picture(np.broadcast_to(array, (*array.shape[:2], 3)).copy(), name)


def _to_8_bit(array: NDArray[Any], name: str) -> Array8:
    array = array.astype(array.dtype.newbyteorder("="), copy=False)  # big-endian TIFF
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype == np.uint16:
        return ((array.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)
    if not np.issubdtype(array.dtype, np.floating):
        raise ImageError(f"{name} holds {array.dtype}: use uint8, uint16, bool or floats in 0..1")
    if not np.isfinite(array).all():
        raise ImageError(f"{name} holds NaN or infinite values: expected floats in 0..1")
    low, high = float(array.min()), float(array.max())
    if low < 0 or high > 1:
        raise ImageError(f"{name} holds floats from {low:g} to {high:g}: expected 0..1")
    return (array * 255 + 0.5).astype(np.uint8)


def _over_white(rgba: Array8) -> Array8:
    color, alpha = rgba[..., :3].astype(np.uint16), rgba[..., 3:].astype(np.uint16)
    return ((color * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


def check_size(height: int, width: int, name: str, max_pixels: int) -> None:
    if height < 1 or width < 1:
        raise ImageError(f"{name} is {width}x{height}: it has no pixels")
    if height * width > max_pixels:
        raise ImageError(
            f"{name} is {width}x{height}, {height * width:,} pixels: the limit is "
            f"{max_pixels:,}; make it smaller or raise max_pixels"
        )


def resized_size(height: int, width: int, windowing: Windowing) -> tuple[int, int]:
    """Keep the ratio; as large as short_side and long_side allow."""
    long, short = max(height, width), min(height, width)
    factor = min(windowing.long_side / long, windowing.short_side / short)
    return int(height * factor + 0.5), int(width * factor + 0.5)


def prepare(
    picture: Picture,
    windowing: Windowing,
    mean: tuple[float, float, float],
    std: tuple[float, float, float],
    smallest: int,
) -> NDArray[np.float32]:
    """Picture -> (3, h, w) pixels resized as OpenCV does on uint8, then normalised."""
    import cv2

    height, width = resized_size(*picture.size, windowing)
    if min(height, width) < smallest:
        full_height, full_width = picture.size
        raise ImageError(
            f"{picture.name} is {full_width}x{full_height} and would be resized to "
            f"{width}x{height}, narrower than one patch of {smallest} pixels: crop it, or use a "
            "larger long_side or short_side"
        )
    small = cv2.resize(picture.rgb, (width, height), interpolation=cv2.INTER_LINEAR)
    pixels = small.astype(np.float32)
    pixels -= np.asarray(mean, dtype=np.float32)
    pixels /= np.asarray(std, dtype=np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
