"""Our brush masks, read back by Label Studio's own SDK and by the format's definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from label_studio_sdk.converter.brush import decode_rle, mask2rle

from naclip.errors import SettingsError
from naclip.export.label_studio import brush_rle

MASKS = arrays.arrays(np.bool_, st.tuples(st.integers(1, 40), st.integers(1, 40)))


def by_the_sdk(rle: list[int], shape: tuple[int, int]) -> np.ndarray:
    """(H, W, 4)"""
    return decode_rle(rle).reshape(*shape, 4)


@given(mask=MASKS)
def test_the_sdk_reads_the_mask_back_in_all_four_channels(mask: np.ndarray) -> None:
    pixels = by_the_sdk(brush_rle(mask), mask.shape)
    np.testing.assert_array_equal(pixels, np.where(mask, 255, 0)[:, :, np.newaxis].repeat(4, 2))


@given(mask=MASKS)
def test_the_sdks_own_mask_is_read_alike(mask: np.ndarray) -> None:
    theirs = by_the_sdk(mask2rle(mask.astype(np.uint8) * 255), mask.shape)
    np.testing.assert_array_equal(by_the_sdk(brush_rle(mask), mask.shape), theirs)


# Lengths at the bounds of the four sizes, and of a run that has to be cut, in pixels.
@pytest.mark.parametrize("bound", [4, 64, 1024, 16_384, 32_768])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_sdk_reads_runs_at_the_bounds_of_the_sizes(bound: int, more: int) -> None:
    mask = np.zeros((1, 80_000), np.bool_)
    mask[0, 7 : 7 + bound + more] = True
    pixels = by_the_sdk(brush_rle(mask), mask.shape)
    np.testing.assert_array_equal(pixels[..., 3] == 255, mask)


def test_a_mask_of_one_pixel_bit_by_bit() -> None:
    # 4 values | of 8 bits | sizes 4, 8, 12, 16 | a run, size 0, of 4, of 255 | filled up
    bits = f"{4:032b}" + "00111" + "0011011110111111" + "100001111111111" + "0000"
    expected = [int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)]
    assert brush_rle(np.ones((1, 1), np.bool_)) == expected


def test_a_mask_too_large_for_the_format_is_refused() -> None:
    huge = np.broadcast_to(np.zeros(1, np.bool_), (1 << 15, 1 << 15))
    with pytest.raises(SettingsError, match=r"32768x32768 pixels: .* use polygons"):
        brush_rle(huge)
