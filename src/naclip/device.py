"""Where and in which precision the towers run, and what to say when memory runs out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import torch

from naclip.errors import OutOfMemoryError, SettingsError
from naclip.settings import Device, Precision

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

# The words of torch (CPU; CUDA and MPS), OpenCV, and C++.
ALLOCATION_FAILED = ("can't allocate", "out of memory", "Insufficient memory", "bad_alloc")


def choose_device(asked: Device) -> torch.device:
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if asked == "auto":
        return torch.device(next(name for name in ("cuda", "mps", "cpu") if available[name]))
    if asked not in available:
        raise SettingsError(f"device is {asked!r}: use auto, {', '.join(available)}")
    if not available[asked]:
        raise SettingsError(f"device {asked} is not available here: use auto or cpu")
    return torch.device(asked)


def choose_precision(asked: Precision, device: torch.device) -> str:
    """auto is fp32 everywhere: it never changes labels beyond float rounding."""
    known = get_args(Precision)
    if asked not in known:
        raise SettingsError(f"precision is {asked!r}: use {', '.join(known)}")
    if asked == "fp16" and device.type == "cpu":
        raise SettingsError("precision fp16 is slower than fp32 on a CPU: use bf16 or fp32")
    return "fp32" if asked == "auto" else asked


@contextmanager
def memory_errors(what: str) -> Iterator[None]:
    """Out of memory as one line that says what to do; nothing is retried in a smaller way."""
    try:
        yield
    except Exception as error:
        known = isinstance(error, (MemoryError, torch.OutOfMemoryError))
        if not known and not any(words in str(error) for words in ALLOCATION_FAILED):
            raise
        raise OutOfMemoryError(
            f"{what}: out of memory: use a smaller image or short_side, windows instead of the "
            "whole image, fewer classes, or no refinement"
        ) from error
