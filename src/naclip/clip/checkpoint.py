"""Tensors out of checkpoint files, and nothing else out of them.

Three kinds of file: safetensors, PyTorch's zip of pickled tensors, and the TorchScript archive that
OpenAI published. A pickle is a program; the one here may only rebuild tensors.
"""

from __future__ import annotations

import math
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from naclip.errors import CheckpointError

Tensors = dict[str, Tensor]

DTYPES = {
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
}


def read_tensors(path: Path) -> Tensors:
    """All tensors of a checkpoint file by name."""
    try:
        if _is_safetensors(path):
            from safetensors.torch import load_file

            return dict(load_file(path))
        if not zipfile.is_zipfile(path):
            raise CheckpointError(
                f"{path}: not a checkpoint: expected safetensors or a PyTorch zip archive "
                "(is the download complete?)"
            )
        if _is_torchscript(path):
            return _read_torchscript(path)
        return _tensors_of(torch.load(path, map_location="cpu", weights_only=True), path)
    except CheckpointError:
        raise
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file") from None
    except (pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{path}: damaged, or holds more than tensors and is not unpickled ({_line(error)})"
        ) from None
    except Exception as error:  # readers of hostile bytes: struct.error, KeyError, anything
        raise CheckpointError(f"{path}: damaged checkpoint ({_line(error)})") from None


def _line(error: Exception) -> str:
    """The first line of what an error says."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _is_safetensors(path: Path) -> bool:
    """A length of 8 bytes, then a JSON object."""
    with path.open("rb") as file:
        head = file.read(9)
    return len(head) == 9 and head[8:] == b"{"


def _tensors_of(loaded: Any, path: Path) -> Tensors:
    """The state dict, out of the wrapping that training programs put around it."""
    if isinstance(loaded, dict):
        loaded = loaded.get("state_dict", loaded)
    if not isinstance(loaded, dict):
        raise CheckpointError(f"{path}: expected tensors by name, found {type(loaded).__name__}")
    tensors = {
        str(name).removeprefix("module."): value
        for name, value in loaded.items()
        if isinstance(value, Tensor)
    }
    if not tensors:
        raise CheckpointError(f"{path}: holds no tensors")
    return tensors


def _is_torchscript(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def _read_torchscript(path: Path) -> Tensors:
    """Parameters and buffers of a TorchScript archive, without running its code."""
    with zipfile.ZipFile(path) as archive:
        pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        root = pickled.removesuffix("data.pkl")
        with archive.open(pickled) as file:
            module = _TensorsOnly(file, archive, root).load()
    tensors: Tensors = {}
    _collect(module, "", tensors)
    return tensors


class _ScriptModule:
    """Stands for any class of the archive: a bag of attributes."""

    def __setstate__(self, state: Any) -> None:
        self.attributes = state if isinstance(state, dict) else {}


class _TensorsOnly(pickle.Unpickler):
    """Rebuilds tensors and bags of attributes; whatever else a pickle asks for is refused."""

    def __init__(self, file: Any, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(file)
        self.archive = archive
        self.root = root

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("__torch__"):
            return _ScriptModule
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        allowed = {
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
            ("torch._utils", "_rebuild_parameter"): lambda tensor, grad, hooks: tensor,
            ("collections", "OrderedDict"): OrderedDict,
        }
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"{module}.{name} is not a tensor")
        return allowed[module, name]

    def persistent_load(self, reference: Any) -> Tensor:
        _, dtype, key, _, count = reference
        entry = self.archive.getinfo(f"{self.root}data/{key}")
        if entry.compress_type != zipfile.ZIP_STORED:  # PyTorch never does; a bomb would
            raise pickle.UnpicklingError(f"tensor data {key} is compressed")
        data = self.archive.read(entry)
        flat = torch.frombuffer(bytearray(data), dtype=dtype)
        if len(flat) < count:
            raise pickle.UnpicklingError(f"tensor data {key} is cut short")
        return flat


def _rebuild_tensor(
    flat: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any
) -> Tensor:
    if math.prod(size) > len(flat):  # a stride of 0 would make much of little
        raise pickle.UnpicklingError(f"a tensor of {tuple(size)} has {len(flat)} numbers")
    return flat.as_strided(size, stride, offset).clone()  # as_strided checks the bounds


def _collect(module: Any, prefix: str, tensors: Tensors) -> None:
    for name, value in getattr(module, "attributes", {}).items():
        if isinstance(value, Tensor):
            tensors[prefix + name] = value
        elif isinstance(value, _ScriptModule):
            _collect(value, f"{prefix}{name}.", tensors)
        elif isinstance(value, int) and not prefix:  # input_resolution, context_length, ...
            tensors[name] = torch.tensor(value)
