"""The folder of an export: graphs, tokenizer, vectors of names, and the config beside them."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naclip import __version__, images, synthetic, vocabulary, windows
from naclip.clip.model import ClipModel
from naclip.clip.names import text_features
from naclip.clip.tokens import clip_tokenizer
from naclip.errors import OutputError, SettingsError
from naclip.files import atomic
from naclip.onnx import graphs
from naclip.onnx.check import largest_difference, require_agreement
from naclip.settings import Settings, options
from naclip.vocabulary import Vocabulary

CHECKED = 3  # windows, beside a batch of one


@dataclass(frozen=True)
class Exported:
    files: tuple[Path, ...]
    differences: dict[str, float]  # of each graph from torch, the largest over what was compared


def export(
    model: ClipModel,
    folder: str | os.PathLike[str],
    settings: Settings | None = None,
    words: Vocabulary | None = None,
    templates: Sequence[str] | None = None,
) -> Exported:
    """Write the model as ONNX; nothing is written unless the graphs agree with torch.

    settings    window and method go into the vision graph, the rest into the config
    words       classes whose vectors are written, so that no text needs to be encoded
    """
    graphs.require_extra()
    chosen = settings or model.defaults
    prompts = vocabulary.templates()
    if templates is not None:
        prompts = vocabulary.checked_templates(templates)
    _require_exportable(chosen, model.shape.patch)
    vision, vision_differs = _vision(model, chosen)
    text, text_differs = _text(model)
    differences = {"vision": vision_differs, "text": text_differs}
    config = _config(model, chosen, prompts, words) | {"differences_from_torch": differences}
    parts = {
        "vision.onnx": vision,
        "text.onnx": text,
        "tokenizer.json": clip_tokenizer().portable().encode(),
        "config.json": (json.dumps(config, indent=1, ensure_ascii=False) + "\n").encode(),
    }
    if words is not None:
        parts["words.npy"] = _npy(text_features(model, words.prompts, prompts))
    return Exported(_write(Path(folder), parts), differences)


def _require_exportable(settings: Settings, patch: int) -> None:
    if settings.windowing.whole:
        raise SettingsError("an ONNX graph takes windows of one size: leave whole out")
    if settings.method.scoring != "cosine":
        raise SettingsError(
            f"scoring {settings.method.scoring!r} is no part of an ONNX graph: use cosine"
        )
    if settings.windowing.window < patch:
        raise SettingsError(
            f"window {settings.windowing.window} is smaller than a patch of the model: "
            f"use at least {patch}"
        )


def _vision(model: ClipModel, settings: Settings) -> tuple[bytes, float]:
    side = settings.windowing.window
    pixels = _drawn_windows(model, side)
    vision = graphs.Vision(model.vision, settings.method, side)
    with torch.inference_mode():
        vision(pixels[:1])  # a depth that the model does not have is said before the long part
    graph = graphs.vision_graph(vision, pixels, model)
    difference = largest_difference(graph, vision, [pixels[:1], pixels])
    require_agreement("vision", difference)
    return graph, difference


def _drawn_windows(model: ClipModel, side: int) -> Tensor:
    """(CHECKED, 3, side, side): windows of a drawn scene, as the model sees images."""
    shape = model.shape
    picture = images.load(synthetic.draw(seed=7, size=(96, 96 + 32 * (CHECKED - 1))).image)
    step = max(1, side // 3)
    windowing = (
        Settings().updated(short_side=side, long_side=10 * side, window=side, stride=step).windowing
    )
    pixels = torch.from_numpy(
        images.prepare(picture, windowing, shape.mean, shape.std, shape.patch)
    )
    size = (pixels.shape[1], pixels.shape[2])
    cut = windows.cut(pixels, windows.plan(size, size, windowing, shape.patch))
    return cut[:CHECKED].contiguous()


def _text(model: ClipModel) -> tuple[bytes, float]:
    texts = ["cat", "a photo of a yellow school bus.", "grass and sky", "zebra"]
    ids = torch.from_numpy(clip_tokenizer().encode(texts, model.shape.context))
    text = graphs.Text(model.text)
    graph = graphs.text_graph(text, ids[:, :-1], model)
    longest = int(ids.argmax(dim=-1).max()) + 1
    difference = largest_difference(graph, text, [ids, ids[:, :longest], ids[:1]])
    require_agreement("text", difference)
    return graph, difference


def _config(
    model: ClipModel, settings: Settings, templates: Sequence[str], words: Vocabulary | None
) -> dict[str, Any]:
    shape = model.shape
    not_done = {part.name for group, part in options() if group == "refinement"}
    config: dict[str, Any] = {
        "made_by": f"naclip {__version__}",
        "model": model.name,
        "weights_sha256": model.fingerprint,
        "settings": {k: v for k, v in settings.flat().items() if k not in not_done},
        "cells": settings.windowing.window // shape.patch,  # patches along a side of a window
        "mean": shape.mean,  # of RGB in 0..255
        "std": shape.std,
        "context": shape.context,
        "templates": list(templates),
    }
    if words is not None:
        config["classes"] = [
            {"name": title, "names": list(names)}
            for title, names in zip(words.classes, words.names, strict=True)
        ]
        config["has_background"] = words.has_background
    return config


def _npy(vectors: Tensor) -> bytes:
    file = io.BytesIO()
    np.save(file, vectors.numpy())
    return file.getvalue()


def _write(folder: Path, parts: dict[str, bytes]) -> tuple[Path, ...]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror})") from None
    for name, content in parts.items():
        with atomic(folder / name) as file:
            file.write(content)
    # Vectors of an earlier export would be of other words.
    if "words.npy" not in parts:
        (folder / "words.npy").unlink(missing_ok=True)
    return tuple(folder / name for name in parts)
