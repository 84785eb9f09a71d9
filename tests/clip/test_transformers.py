"""Checkpoints written by the real `transformers`, against its own features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import CLIPConfig, CLIPModel

from naclip.clip.model import open_model
from naclip.errors import CheckpointError

from .families import write_json

LARGE = 77 - 1


def real_clip(activation: str, **vision: Any) -> CLIPModel:
    torch.manual_seed(3)
    text = {
        "vocab_size": 500,
        "hidden_size": 48,
        "intermediate_size": 100,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 77,
        "hidden_act": activation,
        "bos_token_id": 498,
        "eos_token_id": 499,
    }
    tower = {
        "hidden_size": 96,
        "intermediate_size": 200,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "image_size": 224,
        "patch_size": 32,
        "hidden_act": activation,
        **vision,
    }
    config = CLIPConfig(text_config=text, vision_config=tower, projection_dim=40)
    model = CLIPModel(config).eval()
    for parameter in model.parameters():
        if parameter.ndim:
            torch.nn.init.normal_(parameter, std=0.15)
    return model


@pytest.mark.parametrize("written", ["safetensors", "bin"])
@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
@torch.inference_mode()
def test_features_match_transformers_own(tmp_path: Path, activation: str, written: str) -> None:
    model = real_clip(activation)
    model.save_pretrained(tmp_path)
    if written == "bin":  # what older versions wrote
        (tmp_path / "model.safetensors").unlink()
        torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    ours = open_model(tmp_path)
    assert (ours.shape.vision.heads, ours.shape.text.heads) == (3, 4)
    assert ours.shape.activation == activation
    pixels, ids = torch.randn(2, 3, 224, 224), torch.zeros(2, 77, dtype=torch.long)
    for row, length in zip(ids, (3, LARGE), strict=True):
        row[0], row[1:length], row[length:] = 498, torch.randint(1, 497, (length - 1,)), 499
    theirs = model(input_ids=ids, pixel_values=pixels)
    image = ours.vision(pixels)
    text = torch.nn.functional.normalize(ours.text(ids), dim=-1)
    torch.testing.assert_close(image, theirs.image_embeds, rtol=0, atol=5e-6)
    torch.testing.assert_close(text, theirs.text_embeds, rtol=0, atol=5e-6)


def test_a_config_with_two_activations_is_refused(tmp_path: Path) -> None:
    real_clip("gelu", hidden_act="quick_gelu").save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="expected quick_gelu or gelu, the same in both tow"):
        open_model(tmp_path)


def test_heads_that_do_not_divide_the_width_are_refused(tmp_path: Path) -> None:
    import json

    real_clip("gelu").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["vision_config"]["num_attention_heads"] = 7
    write_json(tmp_path / "config.json", config)
    with pytest.raises(CheckpointError, match="7 heads do not divide the vision width 96"):
        open_model(tmp_path)


def test_another_architecture_says_which(tmp_path: Path) -> None:
    real_clip("gelu").save_pretrained(tmp_path)
    write_json(tmp_path / "config.json", {"model_type": "siglip"})
    with pytest.raises(CheckpointError, match="expected model_type clip, found siglip"):
        open_model(tmp_path)
