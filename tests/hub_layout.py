"""A small CLIP with random weights as Hugging Face's hub lays one out, written by hand.

(tests/clip writes the same with the real `transformers`; this one needs nothing installed.)
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

WIDTH, LAYERS, PATCH, SIDE, EMBEDDING, WORDS = 64, 2, 16, 224, 32, 49408


def write_small_clip(folder: Path) -> None:
    tower = {
        "hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 1,
        "hidden_act": "quick_gelu",
    }
    config = {
        "model_type": "clip",
        "projection_dim": EMBEDDING,
        "vision_config": {**tower, "image_size": SIDE, "patch_size": PATCH},
        "text_config": {**tower, "vocab_size": WORDS, "max_position_embeddings": 77},
    }
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    save_file(_tensors(), folder / "model.safetensors")


def _tensors() -> dict[str, Tensor]:
    positions = (SIDE // PATCH) ** 2 + 1
    tensors = {
        "logit_scale": torch.tensor(4.6),
        "vision_model.embeddings.class_embedding": torch.randn(WIDTH),
        "vision_model.embeddings.patch_embedding.weight": _random(WIDTH, 3, PATCH, PATCH),
        "vision_model.embeddings.position_embedding.weight": _random(positions, WIDTH),
        "text_model.embeddings.token_embedding.weight": _random(WORDS, WIDTH),
        "text_model.embeddings.position_embedding.weight": _random(77, WIDTH),
        "visual_projection.weight": _random(EMBEDDING, WIDTH),
        "text_projection.weight": _random(EMBEDDING, WIDTH),
    }
    norms = ["vision_model.pre_layrnorm", "vision_model.post_layernorm"]
    norms += ["text_model.final_layer_norm"]
    for tower in ("vision_model", "text_model"):
        for layer in range(LAYERS):
            stem = f"{tower}.encoder.layers.{layer}"
            norms += [f"{stem}.layer_norm1", f"{stem}.layer_norm2"]
            for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                tensors |= _linear(f"{stem}.self_attn.{part}", WIDTH, WIDTH)
            tensors |= _linear(f"{stem}.mlp.fc1", 2 * WIDTH, WIDTH)
            tensors |= _linear(f"{stem}.mlp.fc2", WIDTH, 2 * WIDTH)
    for norm in norms:
        tensors |= {f"{norm}.weight": torch.ones(WIDTH), f"{norm}.bias": torch.zeros(WIDTH)}
    return tensors


def _random(*shape: int) -> Tensor:
    return torch.randn(*shape) * 0.1


def _linear(name: str, rows: int, columns: int) -> dict[str, Tensor]:
    return {f"{name}.weight": _random(rows, columns), f"{name}.bias": torch.zeros(rows)}
