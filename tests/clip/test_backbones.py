"""Public configurations of ViT CLIPs, with random weights and one block in each tower.

The oracle is transformers' CLIPModel with the same weights: its features are compared with those of
our towers, loaded from a folder as OpenCLIP lays it out and from the bare file. Widths, heads,
patches, feed-forwards and activations are those of the published configs; words are few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import CLIPConfig, CLIPModel

from naclip.clip.model import open_model
from naclip.clip.shape import ClipShape, TowerShape
from naclip.clip.sources import MODELS
from naclip.clip.text import TextTower
from naclip.clip.vision import VisionTower
from naclip.errors import CheckpointError

from .families import write_json

WORDS = 300


@dataclass(frozen=True)
class Backbone:
    """As in the published open_clip_config.json; `layers` for the sizes alone."""

    name: str
    vision: dict[str, Any]
    text: dict[str, Any]
    embedding: int
    layers: tuple[int, int]
    quick: bool = False

    @property
    def config(self) -> dict[str, Any]:
        text = {"context_length": 77, "vocab_size": WORDS, **self.text, "layers": 1}
        vision = {"image_size": 224, **self.vision, "layers": 1}
        model = {"embed_dim": self.embedding, "vision_cfg": vision, "text_cfg": text}
        return {"model_cfg": {**model, **({"quick_gelu": True} if self.quick else {})}}


def tower(width: int, patch: int, **more: Any) -> dict[str, Any]:
    return {"width": width, "patch_size": patch, **more}


SMALL, LARGE, HUGE = ({"width": w, "heads": w // 64} for w in (512, 768, 1024))
H14 = tower(1280, 14, head_width=80)
G14 = tower(1408, 14, head_width=88, mlp_ratio=4.3637)
BIGG14 = tower(1664, 14, head_width=104, mlp_ratio=4.9231)
GIANT = {"width": 1280, "heads": 20}
BACKBONES = [
    Backbone("ViT-B-16", tower(768, 16), SMALL, 512, (12, 12)),
    Backbone("ViT-B-16-quickgelu", tower(768, 16), SMALL, 512, (12, 12), True),
    Backbone("ViT-B-32", tower(768, 32), SMALL, 512, (12, 12)),
    Backbone(
        "ViT-B-16-plus-240",
        tower(896, 16, image_size=240),
        {"width": 640, "heads": 10},
        640,
        (12, 12),
    ),
    Backbone("ViT-L-14", tower(1024, 14), LARGE, 768, (24, 12)),
    Backbone("ViT-L-14-336", tower(1024, 14, image_size=336), LARGE, 768, (24, 12)),
    Backbone("ViT-H-14", H14, HUGE, 1024, (32, 24)),
    Backbone("ViT-H-14-378-quickgelu", {**H14, "image_size": 378}, HUGE, 1024, (32, 24), True),
    Backbone("ViT-g-14", G14, HUGE, 1024, (40, 24)),
    Backbone("ViT-bigG-14", BIGG14, GIANT, 1280, (48, 32)),
]
NAMES = {backbone.name: backbone for backbone in BACKBONES}

OPEN_CLIP_NAMES = [  # (Hugging Face, OpenCLIP), written out
    ("vision_model.embeddings.class_embedding", "visual.class_embedding"),
    ("vision_model.embeddings.patch_embedding.weight", "visual.conv1.weight"),
    ("vision_model.embeddings.position_embedding.weight", "visual.positional_embedding"),
    ("vision_model.pre_layrnorm.", "visual.ln_pre."),
    ("vision_model.post_layernorm.", "visual.ln_post."),
    ("text_model.embeddings.token_embedding.weight", "token_embedding.weight"),
    ("text_model.embeddings.position_embedding.weight", "positional_embedding"),
    ("text_model.final_layer_norm.", "ln_final."),
    ("vision_model.encoder.layers.0.", "visual.transformer.resblocks.0."),
    ("text_model.encoder.layers.0.", "transformer.resblocks.0."),
    ("layer_norm", "ln_"),
    ("mlp.fc1.", "mlp.c_fc."),
    ("mlp.fc2.", "mlp.c_proj."),
    ("self_attn.", "attn."),
    ("visual_projection.weight", "visual.proj"),
    ("text_projection.weight", "text_projection"),
]


def real_clip(backbone: Backbone) -> CLIPModel:
    activation = "quick_gelu" if backbone.quick else "gelu"
    text, vision = backbone.config["model_cfg"]["text_cfg"], backbone.config["model_cfg"]
    vision = vision["vision_cfg"]

    def shape(width: int, heads: int, ratio: float) -> dict[str, Any]:
        return {
            "hidden_size": width,
            "intermediate_size": int(width * ratio),
            "num_hidden_layers": 1,
            "num_attention_heads": heads,
            "hidden_act": activation,
        }

    heads = vision["width"] // vision.get("head_width", 64)
    seen = shape(vision["width"], heads, vision.get("mlp_ratio", 4))
    seen |= {"image_size": vision["image_size"], "patch_size": vision["patch_size"]}
    read = shape(text["width"], text["heads"], 4)
    read |= {"vocab_size": WORDS, "bos_token_id": WORDS - 2, "eos_token_id": WORDS - 1}
    config = CLIPConfig(text_config=read, vision_config=seen, projection_dim=backbone.embedding)
    torch.manual_seed(0)
    model = CLIPModel(config).eval()
    for parameter in model.parameters():
        if parameter.ndim:
            parameter.data.uniform_(-0.1, 0.1)
    return model


def in_open_clips_names(tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for original, tensor in tensors.items():
        name = original
        for theirs, ours in OPEN_CLIP_NAMES:
            name = name.replace(theirs, ours)
        if "k_proj" in name or "v_proj" in name or "position_ids" in name:
            continue
        if "q_proj" in name:
            trio = [tensors[original.replace("q_proj", f"{x}_proj")] for x in "qkv"]
            yield name.replace("q_proj.", "in_proj_"), torch.cat(trio)
        else:
            turned = name in ("visual.proj", "text_projection")
            yield name, tensor.T.contiguous() if turned else tensor


# A larger training image changes the count of positions alone; once is enough, and 378 is slow.
@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("336")])
@torch.inference_mode()
def test_features_match_transformers(tmp_path: Path, name: str) -> None:
    backbone = NAMES[name]
    model = real_clip(backbone)
    size = backbone.config["model_cfg"]["vision_cfg"]["image_size"]
    pixels = torch.randn(1, 3, size, size)
    ids = torch.tensor([[WORDS - 2, 5, 17, 200, WORDS - 1]])
    theirs = model(pixel_values=pixels, input_ids=ids)
    weights = tmp_path / "open_clip_model.safetensors"
    save_file(dict(in_open_clips_names(model.state_dict())), weights)
    bare = open_model(weights, activation="quick_gelu" if backbone.quick else "gelu")
    write_json(tmp_path / "open_clip_config.json", backbone.config)
    for ours in (bare, open_model(tmp_path)):
        text = torch.nn.functional.normalize(ours.text(ids), dim=-1)
        torch.testing.assert_close(text, theirs.text_embeds, rtol=0, atol=1e-5)
        torch.testing.assert_close(ours.vision(pixels), theirs.image_embeds, rtol=0, atol=1e-5)
    weights.unlink()


def of_open_clip(known: str) -> str:
    """`ViT-H/14@dfn` -> ViT-H-14"""
    return re.sub(r"@.*", "", known).replace("/", "-")


@pytest.mark.parametrize("known", [name for name, m in MODELS.items() if m.hub])
def test_megabytes_follow_from_the_published_shapes(known: str) -> None:
    backbone = NAMES[of_open_clip(known) + ("-336" if known.endswith("@336px") else "")]
    vision, text = backbone.config["model_cfg"]["vision_cfg"], backbone.text
    sizes = (vision["width"], text["width"])
    ratios = (vision.get("mlp_ratio", 4), 4)
    towers = [
        TowerShape(width, layers, 1, int(width * ratio))
        for width, layers, ratio in zip(sizes, backbone.layers, ratios, strict=True)
    ]
    shape = ClipShape(*towers, vision["image_size"], vision["patch_size"], backbone.embedding)
    with torch.device("meta"):
        parts = (VisionTower(shape), TextTower(shape))
    numbers = sum(p.numel() for part in parts for p in part.parameters())
    assert MODELS[known].megabytes == pytest.approx(4 * numbers / 1e6, abs=1.5)


def test_a_bare_file_of_a_width_with_two_activations_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file(dict(in_open_clips_names(real_clip(NAMES["ViT-H-14"]).state_dict())), path)
    with pytest.raises(CheckpointError, match="choose --activation gelu or quick_gelu"):
        open_model(path)


@pytest.mark.parametrize("name", ["RemoteCLIP-ViT-B-32.pt", "metaclip_b16.pt", "dfn2b.bin"])
def test_files_of_families_with_two_activations_are_not_guessed(tmp_path: Path, name: str) -> None:
    torch.save({"visual.conv1.weight": torch.zeros(8, 3, 4, 4)}, tmp_path / name)
    with pytest.raises(CheckpointError, match="choose --activation gelu or quick_gelu"):
        open_model(tmp_path / name)


VIT = {"image_size": 224, "layers": 12, "width": 768, "patch_size": 16}
OWN = {"context_length": 77, "vocab_size": 49408, "width": 512, "heads": 8, "layers": 12}
REFUSED = {  # what makes these published configs no plain CLIP
    "SigLIP": (
        {"timm_model_name": "vit_base_patch16_siglip_224", "timm_pool": "map"},
        {**OWN, "no_causal_mask": True, "pool_type": "last"},
        "vision_cfg.timm_model_name: a vision tower of timm's",
    ),
    "BiomedCLIP": (
        VIT | {"timm_model_name": "vit_base_patch16_224"},
        {"hf_model_name": "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract"},
        "vision_cfg.timm_model_name: a vision tower of timm's",
    ),
    "roberta-ViT-B-32": (
        VIT,
        {"hf_model_name": "roberta-base", "hf_tokenizer_name": "roberta-base"},
        "text_cfg.hf_model_name: a text tower from the Hugging Face hub",
    ),
    "ViT-H-14-worldwide": (
        VIT,
        {**OWN, "vocab_size": 901629, "hf_tokenizer_name": "facebook/xlm-v-base"},
        "text_cfg.hf_tokenizer_name: another tokenizer",
    ),
    "ViT-L-14-CLIPA": (
        {**VIT, "no_ln_pre": True, "pool_type": "avg", "final_ln_after_pool": True},
        {**OWN, "context_length": 32, "vocab_size": 32000},
        "vision_cfg.no_ln_pre: true",
    ),
    "ViT-M-16-alt": ({**VIT, "ls_init_value": 1e-4}, OWN, "vision_cfg.ls_init_value: 0.0001"),
    "RN50": ({**VIT, "layers": [3, 4, 6, 3]}, OWN, "vision_cfg.layers: a ResNet CLIP"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_published_configs_of_other_architectures_are_refused(tmp_path: Path, name: str) -> None:
    vision, text, reason = REFUSED[name]
    model = {"embed_dim": 512, "vision_cfg": vision, "text_cfg": text}
    write_json(tmp_path / "open_clip_config.json", {"model_cfg": model})
    (tmp_path / "open_clip_model.safetensors").write_bytes(b"never read")
    with pytest.raises(CheckpointError) as error:
        open_model(tmp_path)
    assert f"expected a plain CLIP (ViT and CLIP's own text transformer), found {reason};" in str(
        error.value
    )
    assert "\n" not in str(error.value)


def test_a_coca_is_refused_by_its_config(tmp_path: Path) -> None:
    model = {"vision_cfg": VIT, "text_cfg": OWN, "multimodal_cfg": {"width": 512}}
    write_json(tmp_path / "open_clip_config.json", {"model_cfg": model})
    (tmp_path / "open_clip_model.safetensors").write_bytes(b"never read")
    with pytest.raises(CheckpointError, match="found multimodal_cfg: a CoCa"):
        open_model(tmp_path)


def test_a_siglip_of_hugging_face_is_refused_by_its_config(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", {"model_type": "siglip"})
    (tmp_path / "model.safetensors").write_bytes(b"never read")
    with pytest.raises(CheckpointError, match=r"expected model_type clip, found siglip \(SigLIP"):
        open_model(tmp_path)


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [
        ("visual.layer1.0.conv1.weight", "a ResNet CLIP"),
        ("visual.trunk.blocks.0.attn.qkv.weight", "a vision tower of timm's"),
        ("vision_model.head.probe", "a SigLIP"),
        ("text.transformer.embeddings.word_embeddings.weight", "a text tower of the BERT family"),
        ("text_decoder.ln_final.weight", "a CoCa"),
    ],
)
def test_bare_files_of_other_architectures_are_refused(
    tmp_path: Path, tensor: str, kind: str
) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({tensor: torch.zeros(2), "visual.conv1.weight": torch.zeros(8, 3, 4, 4)}, path)
    with pytest.raises(CheckpointError, match=f"found {kind}.*see docs/backbones.md"):
        open_model(path)
