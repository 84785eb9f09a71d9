"""What runs the frozen blocks of the vision tower: nearly all of an image's work.

    torch      eager: the reference; the only one for cuda and mps besides compile
    compile    torch.compile with the weights frozen in; needs a C++ compiler at run time
    openvino   Intel's runtime, on any x86 or ARM CPU: fp32, bf16, int8

The last block(s), which the methods read in their own way, always run in torch. `auto` takes what
is fastest among those that leave labels alone but for the rounding of floats.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from naclip.clip.vision import Trace, VisionTower
from naclip.device import DTYPES
from naclip.errors import SettingsError, no_such
from naclip.settings import Engine

# Below, loading OpenVINO (0.8 s) costs more than it saves in dozens of images.
WORTH_LOADING = 20_000_000  # parameters of the vision tower
NAMES = ("torch", "compile", "openvino")
PRECISIONS = {
    "torch": ("fp32", "bf16", "fp16"),
    "compile": ("fp32", "bf16", "fp16"),
    "openvino": ("fp32", "bf16", "int8"),
}


class Runner(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> torch.dtype:
        """Of the pixels it takes and of the block(s) that torch runs after it."""
        ...

    @property
    def tokens_at_once(self) -> int:
        """How large the batches are that it is fastest with."""
        ...

    def trace(self, pixels: Tensor, last: int) -> Trace:
        """As VisionTower.trace: what enters each of the last blocks."""
        ...


def batches(engine: Runner, windows: Tensor, patch: int) -> tuple[Tensor, ...]:
    """Windows (B, 3, h, w) of any number, as many at a time as the engine is fastest with."""
    tokens = 1 + (windows.shape[-2] // patch) * (windows.shape[-1] // patch)
    return windows.split(max(1, engine.tokens_at_once // tokens))


def choose(asked: Engine, precision: str, device: torch.device, tower: VisionTower) -> str:
    """The engine's name, or an error if it cannot run this."""
    if asked not in ("auto", *NAMES):
        raise SettingsError(no_such("engine", asked, ["auto", *NAMES], "naclip segment --help"))
    chosen = _fastest(precision, device, tower) if asked == "auto" else asked
    if precision not in PRECISIONS[chosen]:
        able = [name for name in NAMES if precision in PRECISIONS[name]]
        raise SettingsError(
            f"engine {chosen} has no precision {precision}: use one of "
            f"{', '.join(PRECISIONS[chosen])}, or engine {' or '.join(able)}"
        )
    if chosen == "openvino" and device.type != "cpu":
        raise SettingsError(f"engine openvino runs on the CPU, not on {device}: use engine torch")
    return chosen


def _fastest(precision: str, device: torch.device, tower: VisionTower) -> str:
    if precision == "int8":
        return "openvino"
    large = sum(p.numel() for p in tower.parameters()) >= WORTH_LOADING
    usable = device.type == "cpu" and precision in PRECISIONS["openvino"]
    installed = importlib.util.find_spec("openvino") is not None
    return "openvino" if large and usable and installed else "torch"


def start(
    asked: Engine,
    precision: str,
    device: torch.device,
    tower: VisionTower,
    fingerprint: str,
    samples: Sequence[Tensor] = (),
) -> Runner:
    """`tower` moves to the device and dtype that its last block(s) will run in.

    samples     windows (B, 3, h, w) that int8 takes its ranges from
    """
    chosen = choose(asked, precision, device, tower)
    if chosen == "openvino":
        from naclip.engines.openvino import OpenVino

        return OpenVino(tower.to(device, torch.float32), precision, fingerprint, samples)
    ready = tower.to(device, DTYPES[precision])
    if chosen == "compile":
        from naclip.engines.compile import Compiled

        return Compiled(ready)
    from naclip.engines.eager import Eager

    return Eager(ready)
