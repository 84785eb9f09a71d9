"""The model that comes with the package, saved as each family saves its own: the same masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import naclip
from naclip.clip.sources import MODELS, find_source
from naclip.results import Segmentation
from naclip.synthetic import CLASSES, draw

from .families import Tensors, write_json, write_openai_archive

TINY = MODELS["tiny"]
HUGGING_FACE = [  # OpenAI's names -> transformers', in order
    ("visual.proj", "visual_projection.weight"),
    ("visual.class_embedding", "vision_model.embeddings.class_embedding"),
    ("visual.conv1.", "vision_model.embeddings.patch_embedding."),
    ("visual.positional_embedding", "vision_model.embeddings.position_embedding.weight"),
    ("visual.ln_pre.", "vision_model.pre_layrnorm."),
    ("visual.ln_post.", "vision_model.post_layernorm."),
    ("visual.transformer.resblocks.", "vision_model.encoder.layers."),
    ("token_embedding.", "text_model.embeddings.token_embedding."),
    ("positional_embedding", "text_model.embeddings.position_embedding.weight"),
    ("ln_final.", "text_model.final_layer_norm."),
    ("transformer.resblocks.", "text_model.encoder.layers."),
]
INSIDE_A_BLOCK = [
    (".attn.", ".self_attn."),
    (".ln_1.", ".layer_norm1."),
    (".ln_2.", ".layer_norm2."),
    (".mlp.c_fc.", ".mlp.fc1."),
    (".mlp.c_proj.", ".mlp.fc2."),
]


@pytest.fixture(scope="module")
def weights() -> Tensors:
    return {name: t.float() for name, t in load_file(find_source("tiny").weights).items()}


def their_name(name: str) -> str:
    for ours, theirs in HUGGING_FACE:
        if name.startswith(ours):
            name = theirs + name.removeprefix(ours)
            break
    for ours, theirs in INSIDE_A_BLOCK:
        name = name.replace(ours, theirs)
    return name


def in_transformers_names(weights: Tensors) -> Tensors:
    state: Tensors = {}
    for name, tensor in weights.items():
        if name == "text_projection":
            state["text_projection.weight"] = tensor.T
        elif name == "visual.proj":
            state[their_name(name)] = tensor.T
        elif ".in_proj_" in name:
            for part, rows in zip("qkv", tensor.chunk(3), strict=True):
                state[their_name(name.replace("in_proj_", f"{part}_proj."))] = rows
        else:
            state[their_name(name)] = tensor
    return {name: t.contiguous() for name, t in state.items()}


def as_hugging_face(folder: Path, weights: Tensors) -> Path:
    """Written by the real transformers, which refuses a tensor too many or too few."""
    from transformers import CLIPConfig, CLIPModel

    def tower(width: int, layers: int, heads: int) -> dict[str, object]:
        sizes = {"hidden_size": width, "intermediate_size": 4 * width}
        depth = {"num_hidden_layers": layers, "num_attention_heads": heads}
        return {**sizes, **depth, "hidden_act": "quick_gelu"}

    vision = tower(192, 6, 3) | {"image_size": 64, "patch_size": 8}
    config = CLIPConfig(text_config=tower(128, 3, 2), vision_config=vision, projection_dim=192)
    model = CLIPModel(config)
    model.load_state_dict(in_transformers_names(weights))
    model.save_pretrained(folder)
    return folder


def as_open_clip(folder: Path, weights: Tensors) -> Path:
    save_file(weights, folder / "open_clip_model.safetensors")
    vision = {"image_size": 64, "layers": 6, "width": 192, "head_width": 64, "patch_size": 8}
    text = {"context_length": 77, "vocab_size": 49408, "width": 128, "heads": 2, "layers": 3}
    model = {"embed_dim": 192, "quick_gelu": True, "vision_cfg": vision, "text_cfg": text}
    write_json(folder / "open_clip_config.json", {"model_cfg": model})
    return folder


def as_openai_archive(folder: Path, weights: Tensors) -> Path:
    write_openai_archive(folder / "tiny.pt", weights)
    return folder / "tiny.pt"


def segmented(model: str | Path) -> Segmentation:
    scene = draw(50_000, (96, 128), scale=2, split="held-out")
    words = {kind.name: kind.names for kind in CLASSES}
    return naclip.load(model)(scene.image, words, settings=TINY.defaults)


@pytest.mark.parametrize("saved", [as_openai_archive, as_hugging_face, as_open_clip])
def test_the_tiny_model_gives_the_same_masks_through_every_door(
    tmp_path: Path, weights: dict[str, Tensor], saved: object
) -> None:
    expected = segmented("tiny")
    assert len(np.unique(expected.labels)) > 3
    with torch.no_grad():
        found = segmented(saved(tmp_path, weights))  # type: ignore[operator]
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=0, atol=1e-4)
