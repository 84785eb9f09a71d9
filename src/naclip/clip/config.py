"""The config beside a checkpoint: read, and refused where it tells of what is not a plain CLIP.

It is a small file and comes first: a model that cannot be read is refused before its weights are
downloaded. What does load: docs/backbones.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from naclip.errors import CheckpointError

# Keys of an OpenCLIP config that a plain CLIP has, and the values of others that change nothing.
PLAIN: dict[str, tuple[set[str], dict[str, Any]]] = {
    "vision_cfg": (
        {"image_size", "layers", "width", "head_width", "mlp_ratio", "patch_size"}
        | {"patch_dropout", "output_tokens", "timm_pool", "timm_proj", "attn_pooler_heads"},
        {"pool_type": "tok", "pos_embed_type": "learnable"},
    ),
    "text_cfg": (
        {"context_length", "vocab_size", "width", "heads", "layers", "mlp_ratio"}
        | {"output_tokens", "pad_id", "eos_id"},
        {"pool_type": "argmax", "proj_type": "linear"},
    ),
}
KINDS = {  # a key that names another architecture
    "timm_model_name": "a vision tower of timm's",
    "hf_model_name": "a text tower from the Hugging Face hub",
    "hf_tokenizer_name": "another tokenizer",
    "multimodal_cfg": "a CoCa",
}
MODEL_TYPES = {"siglip": "SigLIP", "siglip2": "SigLIP 2", "metaclip_2": "MetaCLIP 2"}


def read_config(path: Path) -> Mapping[str, Any]:
    """Hugging Face's config.json or OpenCLIP's open_clip_config.json."""
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{path}: expected a JSON object")
    kind = config.get("model_type", "clip")
    if kind != "clip":
        known = f" ({MODEL_TYPES[kind]}: see docs/backbones.md)" if kind in MODEL_TYPES else ""
        raise CheckpointError(f"{path}: expected model_type clip, found {kind}{known}")
    if isinstance(config.get("model_cfg"), dict):
        _check_plain(config["model_cfg"], path)
    return config


def _check_plain(model: Mapping[str, Any], path: Path) -> None:
    """What would be read without an error, and wrongly: other pooling, other masks, other words."""

    def refuse(where: str, what: str) -> None:
        raise CheckpointError(
            f"{path}: expected a plain CLIP (ViT and CLIP's own text transformer), found {where}: "
            f"{what}; see docs/backbones.md"
        )

    if model.get("multimodal_cfg"):
        refuse("multimodal_cfg", KINDS["multimodal_cfg"])
    for section, (keys, neutral) in PLAIN.items():
        part = model.get(section)
        if not isinstance(part, dict):
            continue  # the tensors will tell
        if isinstance(part.get("layers"), list):
            refuse(f"{section}.layers", "a ResNet CLIP")
        for key in sorted(part, key=lambda name: name not in KINDS):
            value = part[key]
            if key not in keys and value and neutral.get(key) != value:
                refuse(f"{section}.{key}", KINDS.get(key, json.dumps(value)))
