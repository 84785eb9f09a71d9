"""Small random CLIPs, and the files in which each family of checkpoints keeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from naclip.clip.model import ClipModel, open_model
from naclip.clip.shape import ClipShape, TowerShape
from naclip.clip.text import TextTower
from naclip.clip.vision import VisionTower
from naclip.methods import read_patches
from naclip.settings import METHODS

Tensors = dict[str, Tensor]
SHAPE = ClipShape(
    vision=TowerShape(width=128, layers=2, heads=2, hidden=512),
    text=TowerShape(width=64, layers=2, heads=1, hidden=256),
    image_size=64,
    patch=16,
    embedding=32,
    vocabulary=500,
)


def random_clip(seed: int = 0) -> Tensors:
    """Weights in OpenAI's names, exact in fp16."""
    torch.manual_seed(seed)
    towers = {"visual.": VisionTower(SHAPE), "": TextTower(SHAPE)}
    tensors = {p + n: t for p, tower in towers.items() for n, t in tower.state_dict().items()}
    drawn = {name: torch.randn(t.shape) * 0.15 for name, t in tensors.items()}
    return {name: t.half().float() for name, t in drawn.items()} | {
        "logit_scale": torch.tensor(4.6)
    }


def some_input() -> tuple[Tensor, Tensor]:
    torch.manual_seed(5)
    ids = torch.zeros(2, 77, dtype=torch.long)
    for row, length in zip(ids, (4, 20), strict=True):
        row[:length] = torch.randint(1, 498, (length,))
        row[length] = 499  # the largest id ends a text
    return torch.randn(2, 3, 64, 80), ids


@torch.inference_mode()
def features(model: ClipModel) -> tuple[Tensor, Tensor, Tensor]:
    """Patches under NACLIP, image embeddings, text embeddings."""
    pixels, ids = some_input()
    trace = model.vision.trace(pixels)
    patches = read_patches(model.vision, trace, METHODS["naclip"])
    text = nn.functional.normalize(model.text(ids), dim=-1)
    return patches, model.vision.class_token(trace), text


def assert_same_features(path: Path | str, expected: ClipModel, **options: Any) -> None:
    found = features(open_model(path, **options))
    for ours, theirs in zip(found, features(expected), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-6)


class _Bag(nn.Module):
    """Parameters and nothing to run."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def write_openai_archive(path: Path, tensors: Tensors, markers: str = "buffers") -> None:
    """A TorchScript archive in the layout of OpenAI's: fp16, with its three markers."""
    root = _Bag()
    for name, tensor in tensors.items():
        *folders, leaf = name.split(".")
        module: nn.Module = root
        for folder, following in zip(folders, [*folders, leaf][1:], strict=True):
            if folder not in dict(module.named_children()):
                child = nn.Sequential() if following.isdigit() else _Bag()
                module.add_module(folder, child)
            module = module.get_submodule(folder)
        half = nn.Parameter(tensor.half(), requires_grad=False)
        module.register_parameter(leaf, half)
    for marker, value in (("input_resolution", 64), ("context_length", 77), ("vocab_size", 500)):
        if markers == "buffers":
            root.register_buffer(marker, torch.tensor(value))
        else:
            setattr(root, marker, value)
    torch.jit.save(torch.jit.script(root), str(path))


def write_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


OPEN_CLIP_CONFIG = {
    "model_cfg": {
        "embed_dim": 32,
        "vision_cfg": {"image_size": 64, "layers": 2, "width": 128, "patch_size": 16},
        "text_cfg": {"context_length": 77, "vocab_size": 500, "width": 64, "heads": 1, "layers": 2},
    },
    "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]},
}


def open_clip_config(**model: Any) -> dict[str, Any]:
    return {**OPEN_CLIP_CONFIG, "model_cfg": {**OPEN_CLIP_CONFIG["model_cfg"], **model}}
