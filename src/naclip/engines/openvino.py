"""The frozen blocks on OpenVINO; compiled models are kept on disk and mapped into memory."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naclip.clip.vision import Trace, VisionTower
from naclip.engines.eager import MANY
from naclip.errors import MissingExtraError, OutputError
from naclip.files import atomic, cache_folder

MAX_BYTES = 3 << 30  # of compiled models on disk: those unused for longest go first
HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32"}
RECIPE = 1  # raise when the graph or its calibration changes: what is cached is keyed by it


class OpenVino:
    name = "openvino"
    dtype = torch.float32  # the last block costs little and stays exact
    tokens_at_once = MANY

    def __init__(
        self,
        tower: VisionTower,
        precision: str,
        fingerprint: str,
        samples: Sequence[Tensor] = (),
    ) -> None:
        self.tower = tower
        self.precision = precision
        self.fingerprint = fingerprint
        self.core = _core()
        with torch.inference_mode():  # tokens of the windows that int8 takes its ranges from
            self.samples = [tower.embed(pixels).numpy() for pixels in samples]
        self._models: dict[int, Any] = {}
        self._one_at_a_time = threading.RLock()  # a compiled model holds one set of buffers

    def trace(self, pixels: Tensor, last: int) -> Trace:
        grid = (pixels.shape[-2] // self.tower.patch, pixels.shape[-1] // self.tower.patch)
        last = min(last, len(self.tower.blocks))
        tokens = self.tower.embed(pixels).numpy()
        with self._one_at_a_time:
            if last not in self._models:
                self._models[last] = self._load(last)
            outputs = self._models[last](tokens)
            copies = tuple(torch.from_numpy(np.array(value)) for value in outputs.values())
        return Trace(copies, grid)

    def _load(self, last: int) -> Any:
        config = {
            # Without the hint, a CPU that has bf16 would use it.
            "INFERENCE_PRECISION_HINT": HINTS[self.precision],
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        }
        path = _folder() / f"{self._key(last)}.blob"
        known = _import(self.core, path, config)
        if known is not None:
            return known
        from naclip.engines.graph import graph

        model = graph(self.tower, last)
        if self.precision == "int8":
            model = _quantised(model, self.samples)
        compiled = self.core.compile_model(model, "CPU", config)
        _keep(path, compiled.export_model().getvalue())
        return compiled

    def _key(self, last: int) -> str:
        import openvino as ov

        shape = (len(self.tower.blocks), type(self.tower.blocks[0].mlp.gelu).__name__)
        cpu = [self.core.get_property("CPU", name) for name in CPU_PROPERTIES]
        of_samples = [hashlib.sha256(sample.tobytes()).hexdigest() for sample in self.samples]
        parts = [RECIPE, ov.get_version(), *cpu, self.fingerprint, *shape, self.precision, last]
        return hashlib.sha256(repr([*parts, *of_samples]).encode()).hexdigest()[:32]


CPU_PROPERTIES = ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES")


def _core() -> Any:
    try:
        import openvino as ov
    except ImportError:
        raise MissingExtraError(
            "engine openvino is not installed: pip install 'naclip[openvino]'"
        ) from None
    return ov.Core()


def _quantised(model: Any, samples: Sequence[NDArray[np.float32]]) -> Any:
    try:
        import nncf
    except ImportError:
        raise MissingExtraError(
            "precision int8 needs nncf: pip install 'naclip[openvino]'"
        ) from None
    nncf.set_log_level(logging.ERROR)
    windows = [window[None] for sample in samples for window in sample]
    print(f"naclip: calibrating int8 on {len(windows)} windows", file=sys.stderr)
    with contextlib.redirect_stdout(sys.stderr):  # its progress bars
        return nncf.quantize(
            model,
            nncf.Dataset(windows),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(windows),
        )


def _folder() -> Path:
    return cache_folder() / "openvino"


def _import(core: Any, path: Path, config: dict[str, Any]) -> Any:
    """A compiled model from disk, or None: not there, or of no use."""
    import openvino as ov

    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
        model = core.import_model(ov.Tensor(mapped), "CPU", config)
        path.touch()
        return model
    except (OSError, ValueError, RuntimeError):
        return None  # compiled again


def _keep(path: Path, blob: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as file:
            file.write(blob)
        files = sorted(path.parent.glob("*.blob"), key=lambda f: f.stat().st_mtime, reverse=True)
        total = 0
        for file_ in files:
            total += file_.stat().st_size
            if total > MAX_BYTES:
                file_.unlink(missing_ok=True)
    except (OSError, OutputError):
        pass  # compiled again next time
