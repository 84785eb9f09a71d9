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
HEAD_WIDTH = 64  # of all of OpenAI's models, and of every text tower
# Of the public vision towers whose heads are wider: H/14, g/14, bigG/14 and e/14.
HEAD_WIDTHS = {1280: 80, 1408: 88, 1664: 104, 1792: 112}
BOTH_ACTIVATIONS = re.compile(
    r"open_?clip|laion|datacomp|commonpool|epoch_|remote_?clip|metaclip|dfn", re.IGNORECASE
)

OTHER_ARCHITECTURES = [  # (a tensor's name, what has it)
    (r"visual\.layer1\.0\.conv1\.weight", "a ResNet CLIP"),
    (r"visual\.trunk\..*", "a vision tower of timm's, as SigLIP, EVA, ConvNeXt, MobileCLIP have"),
    (r"vision_model\.head\.probe", "a SigLIP"),
    (r"text\.transformer\.(embeddings|encoder)\..*", "a text tower of the BERT family"),
    (r"text_decoder\..*", "a CoCa"),
]

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
    for pattern, kind in OTHER_ARCHITECTURES:
        found = next((name for name in tensors if re.fullmatch(pattern, name)), None)
        if found:
            raise CheckpointError(
                f"{origin}: expected a CLIP with a vision transformer and CLIP's own text "
                f"transformer, found {kind} ({found}): see docs/backbones.md"
            )
    if any(name.startswith("vision_model.") for name in tensors):
        return _from_hugging_face(tensors, origin)
    renamed = {
        name.removeprefix("text.") if name.startswith("text.") else name: tensor
        for name, tensor in tensors.items()
    }
    if "visual.conv1.weight" not in renamed:
        sample = ", ".join(sorted(tensors)[:3])
        raise CheckpointError(
            f"{origin}: expected a CLIP with a vision transformer, found another model "
            f"({sample}, ...)"
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
    if known is None and asked is None and _may_be_either(tensors, origin):
        raise CheckpointError(
            f"{origin}: an OpenCLIP checkpoint without its open_clip_config.json does not say its "
            "activation: put the config beside it, or choose --activation gelu or quick_gelu"
        )
    return asked or known or "quick_gelu"


def _may_be_either(tensors: Tensors, origin: str) -> bool:
    """Of a family, or of a width, that exists with both activations."""
    embedding = tensors.get("visual.class_embedding")
    width = 0 if embedding is None else embedding.numel()
    return width in HEAD_WIDTHS or BOTH_ACTIVATIONS.search(origin) is not None


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
        vision = _tower(tensors, "visual.transformer.", "vision", config)
        text = _tower(tensors, "transformer.", "text", config)
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


def _tower(
    tensors: Tensors, prefix: str, kind: str, config: Mapping[str, Any] | None
) -> TowerShape:
    pattern = re.compile(re.escape(prefix) + r"resblocks\.(\d+)\.ln_1\.weight")
    layers = sum(1 for name in tensors if pattern.fullmatch(name))
    if layers == 0:
        raise KeyError(f"{prefix}resblocks.0.ln_1.weight")
    fc: Tensor = tensors[f"{prefix}resblocks.0.mlp.c_fc.weight"]
    hidden, width = fc.shape
    return TowerShape(width, layers, _heads(config, kind, width), hidden)


def _heads(config: Mapping[str, Any] | None, kind: str, width: int) -> int:
    """What no tensor tells. Without a config: of the public models of this width."""
    if config is None:
        head_width = HEAD_WIDTHS.get(width, HEAD_WIDTH) if kind == "vision" else HEAD_WIDTH
        return max(1, width // head_width)
    if "model_cfg" in config:  # what it leaves out equals OpenCLIP's defaults
        part = config["model_cfg"].get(f"{kind}_cfg", {})
        if kind == "text":
            return int(part.get("heads", 8))
        return int(part.get("width", width)) // int(part.get("head_width", HEAD_WIDTH))
    heads = (config.get(f"{kind}_config") or {}).get("num_attention_heads")
    # Hugging Face leaves out what equals its defaults: those of ViT-B/32.
    return int(heads) if heads else {"vision": 12, "text": 8}[kind]


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
