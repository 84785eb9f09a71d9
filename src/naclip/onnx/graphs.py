"""The two towers as ONNX graphs. Shapes: B windows or texts, T tokens, E embedding."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from naclip.clip.model import ClipModel
from naclip.clip.text import TextTower
from naclip.clip.vision import VisionTower
from naclip.errors import MissingExtraError, OutputError
from naclip.methods import read_patches
from naclip.methods.neighbourhood import gaussian
from naclip.settings import Method

OPSET = 20  # the first with a GELU of its own
LARGEST = 2_000_000_000  # bytes: protobuf's limit of one file is 2 GiB, and the graph needs some
NEEDED = ("onnx", "onnxscript", "onnxruntime")


class Vision(nn.Module):
    """(B, 3, side, side) normalised pixels -> (B, patches, E), L2-normalised."""

    def __init__(self, tower: VisionTower, method: Method, side: int) -> None:
        super().__init__()
        grid = (side // tower.patch, side // tower.patch)
        # Interpolated once, here: ONNX has no bicubic resize that is sure to be torch's.
        tower.positional_embedding = nn.Parameter(tower.positions(grid), requires_grad=False)
        tower.trained_grid = grid[0]
        # A first call while torch traces would leave a tensor without values in its cache.
        gaussian(grid, method.sigma, torch.device("cpu"))
        self.tower = tower
        self.method = method

    def forward(self, pixels: Tensor) -> Tensor:
        trace = self.tower.trace(pixels, self.method.reads)
        return read_patches(self.tower, trace, self.method)


class Text(nn.Module):
    """(B, T) token ids -> (B, E), L2-normalised; T may be cut behind the longest end token."""

    def __init__(self, tower: TextTower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, ids: Tensor) -> Tensor:
        return F.normalize(self.tower(ids).float(), dim=-1)


def require_extra() -> None:
    for module in NEEDED:
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError(
                f"exporting ONNX needs {module}, which is not installed: pip install 'naclip[onnx]'"
            )


def vision_graph(vision: Vision, pixels: Tensor, origin: ClipModel) -> bytes:
    """`pixels` are any two windows or more: a batch of one would stay a batch of one."""
    return _graph(vision, pixels, {0: "windows"}, ("pixels", "patches"), f"{origin.name} (vision)")


def text_graph(text: Text, ids: Tensor, origin: ClipModel) -> bytes:
    dynamic = {0: "texts", 1: "tokens"}
    return _graph(text, ids, dynamic, ("ids", "features"), f"{origin.name} (text)")


def _graph(
    module: nn.Module, sample: Tensor, dynamic: dict[int, str], names: tuple[str, str], origin: str
) -> bytes:
    size = sum(parameter.numel() * parameter.element_size() for parameter in module.parameters())
    if size > LARGEST:
        raise OutputError(
            f"{origin} has {size / 1e9:.1f} GB of weights, and one ONNX file holds "
            f"{LARGEST / 1e9:.0f} GB at most: export a smaller model"
        )
    dimensions = {axis: torch.export.Dim(name) for axis, name in dynamic.items()}
    with _quiet():
        program = torch.onnx.export(
            module.eval(),
            (sample,),
            input_names=names[:1],
            output_names=names[1:],
            dynamic_shapes=(dimensions,),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    return program.model_proto.SerializeToString()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's notes to its own developers, e.g. that torchvision is missing."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
