"""Three families of checkpoints -> one: OpenAI's names of tensors, and the model's shape.

OpenAI and OpenCLIP share the names (OpenCLIP's custom-text models put `text.` before the text
tower's); Hugging Face has its own. What tensors do not tell (heads, activation) comes from the
config beside them, from OpenAI's markers, or from the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from naclip.clip.checkpoint import Tensors
from naclip.clip.shape import OPENAI_MEAN, OPENAI_STD, ClipShape, TowerShape
from naclip.clip.transformer import ACTIVATIONS
from naclip.errors import CheckpointError, SettingsError, no_such

OPENAI_MARKERS = ("input_resolution", "context_length", "vocab_size")
HEAD_WIDTH = 64  # of all of OpenAI's models

HF_NAMES = [  # (Hugging Face, OpenAI), applied in order
    (r"^vision_model\.embeddings\.class_embedding$", "visual.class_embedding"),
    (r"^vision_model\.embeddings\.patch_embedding\.weight$", "visual.conv1.weight"),
    (r"^vision_model\.embeddings\.position_embedding\.weight$", "visual.positional_embedding"),
    (r"^vision_model\.pre_layrnorm\.", "visual.ln_pre."),  # the typo is theirs
    (r"^vision_model\.post_layernorm\.", "visual.ln_post."),
    (r"^vision_model\.encoder\.layers\.", "visual.transformer.resblocks."),
    (r"^visual_projection\.weight$", "visual.proj"),
    (r"^text_model\.embeddings\.token_embedding\.", "token_embedding."),
    (r"^text_model\.embeddings\.position_embedding\.weight$", "positional_embedding"),
    (r"^text_model\.final_layer_norm\.", "ln_final."),
    (r"^text_model\.encoder\.layers\.", "transformer.resblocks."),
    (r"^text_projection\.weight$", "text_projection"),
    (r"\.layer_norm1\.", ".ln_1."),
    (r"\.layer_norm2\.", ".ln_2."),
    (r"\.mlp\.fc1\.", ".mlp.c_fc."),
    (r"\.mlp\.fc2\.", ".mlp.c_proj."),
    (r"\.self_attn\.", ".attn."),
]


def openai_names(tensors: Tensors, origin: str) -> Tensors:
    """Any of the three families -> OpenAI's names."""
    if any(name.startswith("vision_model.") for name in tensors):
        return _from_hugging_face(tensors, origin)
    renamed = {
        name.removeprefix("text.") if name.startswith("text.") else name: tensor
        for name, tensor in tensors.items()
    }
    if "visual.conv1.weight" not in renamed:
        kind = "a ResNet CLIP" if "visual.layer1.0.conv1.weight" in renamed else "another model"
        sample = ", ".join(sorted(tensors)[:3])
        raise CheckpointError(
            f"{origin}: expected a CLIP with a vision transformer, found {kind} ({sample}, ...)"
        )
    return renamed


def _from_hugging_face(tensors: Tensors, origin: str) -> Tensors:
    renamed: Tensors = {}
    for original, tensor in tensors.items():
        name = original
        for pattern, replacement in HF_NAMES:
            name = re.sub(pattern, replacement, name)
        renamed[name] = tensor.T if name in ("visual.proj", "text_projection") else tensor
    for name in [n for n in renamed if n.endswith(("attn.q_proj.weight", "attn.q_proj.bias"))]:
        stem, kind = name.split("q_proj.")
        trio = [f"{stem}{letter}_proj.{kind}" for letter in "qkv"]
        parts = [renamed.pop(part) for part in trio if part in renamed]
        if len({part.shape for part in parts}) != 1 or len(parts) != 3:
            raise CheckpointError(
                f"{origin}: not the CLIP that it looks like: expected {', '.join(trio)} alike"
            )
        renamed[f"{stem}in_proj_{kind}"] = torch.cat(parts)
    return renamed


def activation_of(
    tensors: Tensors, config: Mapping[str, Any] | None, asked: str | None, origin: str
) -> str:
    """The feed-forward's activation; what is asked for must not contradict what is known.

    The wrong one changes every feature and raises no error by itself, so a checkpoint that says
    nothing and is known to come in both variants is refused rather than guessed.
    """
    if asked is not None and asked not in ACTIVATIONS:
        raise SettingsError(no_such("activation", asked, ACTIVATIONS, "naclip segment --help"))
    known = _known_activation(tensors, config, origin)
    if known is not None and asked is not None and asked != known:
        raise CheckpointError(f"{origin}: was trained with {known}, asked for was {asked}")
    if known is None and asked is None and re.search(r"open_?clip|laion|datacomp|epoch_", origin):
        raise CheckpointError(
            f"{origin}: an OpenCLIP checkpoint without its open_clip_config.json does not say its "
            "activation: put the config beside it, or choose --activation gelu or quick_gelu"
        )
    return asked or known or "quick_gelu"


def _known_activation(
    tensors: Tensors, config: Mapping[str, Any] | None, origin: str
) -> str | None:
    if config is None:
        return "quick_gelu" if any(marker in tensors for marker in OPENAI_MARKERS) else None
    if "model_cfg" in config:
        return "quick_gelu" if config["model_cfg"].get("quick_gelu") else "gelu"
    tower = config.get("vision_config") or {}
    text = config.get("text_config") or {}
    found = {tower.get("hidden_act", "quick_gelu"), text.get("hidden_act", "quick_gelu")}
    if len(found) != 1 or not found <= {"quick_gelu", "gelu"}:
        raise CheckpointError(
            f"{origin}: activations {sorted(found)}: expected quick_gelu or gelu, the same in both "
            "towers"
        )
    return str(found.pop())


def shape_of(
    tensors: Tensors, config: Mapping[str, Any] | None, activation: str, origin: str
) -> ClipShape:
    """The model's dimensions, from its tensors (OpenAI's names) and the config for the rest."""
    try:
        conv, positions = tensors["visual.conv1.weight"], tensors["visual.positional_embedding"]
        table, context = tensors["token_embedding.weight"], tensors["positional_embedding"]
        embedding = tensors["visual.proj"].shape[1]
        vision = _tower(tensors, "visual.transformer.", _heads(config, "vision"))
        text = _tower(tensors, "transformer.", _heads(config, "text"))
    except KeyError as error:
        raise CheckpointError(f"{origin}: incomplete CLIP checkpoint: no tensor {error}") from None
    grid = round((len(positions) - 1) ** 0.5)
    if grid * grid + 1 != len(positions):
        raise CheckpointError(f"{origin}: {len(positions) - 1} positions are no square grid")
    for name, tower in (("vision", vision), ("text", text)):
        if tower.heads < 1 or tower.width % tower.heads:
            raise CheckpointError(
                f"{origin}: {tower.heads} heads do not divide the {name} width {tower.width}"
            )
    mean, std = _normalisation(config)
    return ClipShape(
        vision=vision,
        text=text,
        image_size=grid * conv.shape[-1],
        patch=conv.shape[-1],
        embedding=embedding,
        vocabulary=len(table),
        context=len(context),
        activation=activation,
        mean=mean,
        std=std,
    )


def _tower(tensors: Tensors, prefix: str, heads: int | None) -> TowerShape:
    pattern = re.compile(re.escape(prefix) + r"resblocks\.(\d+)\.ln_1\.weight")
    layers = sum(1 for name in tensors if pattern.fullmatch(name))
    if layers == 0:
        raise KeyError(f"{prefix}resblocks.0.ln_1.weight")
    fc: Tensor = tensors[f"{prefix}resblocks.0.mlp.c_fc.weight"]
    hidden, width = fc.shape
    heads = max(1, width // HEAD_WIDTH) if heads is None else heads
    return TowerShape(width, layers, heads, hidden)


def _heads(config: Mapping[str, Any] | None, tower: str) -> int | None:
    if config is None:
        return None
    if "model_cfg" in config:
        part = config["model_cfg"].get(f"{tower}_cfg", {})
        if tower == "text":
            return int(part.get("heads", 8))  # OpenCLIP's default
        return int(part["width"]) // int(part["head_width"]) if "head_width" in part else None
    heads = (config.get(f"{tower}_config") or {}).get("num_attention_heads")
    # Hugging Face leaves out what equals its defaults: those of ViT-B/32.
    return int(heads) if heads else {"vision": 12, "text": 8}[tower]


def _normalisation(
    config: Mapping[str, Any] | None,
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    known = (config or {}).get("preprocess_cfg") or {}
    if "mean" not in known or "std" not in known:
        return OPENAI_MEAN, OPENAI_STD
    mean, std = (tuple(255 * float(x) for x in known[key]) for key in ("mean", "std"))
    close = all(
        abs(a - b) < 0.01 for a, b in zip(mean + std, OPENAI_MEAN + OPENAI_STD, strict=True)
    )
    return (OPENAI_MEAN, OPENAI_STD) if close else (mean, std)  # type: ignore[return-value]
