"""A CLIP model: two towers loaded from one checkpoint, each only when it is needed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from naclip.clip.checkpoint import Tensors, read_tensors
from naclip.clip.convert import activation_of, openai_names, shape_of
from naclip.clip.shape import ClipShape
from naclip.clip.sources import Source, find_source
from naclip.clip.text import TextTower
from naclip.clip.vision import VisionTower
from naclip.errors import CheckpointError, NaclipError

Tower = TypeVar("Tower", bound=nn.Module)
NOT_OF_A_TOWER = {"logit_scale", "logit_bias", "attn_mask"}


class ClipModel:
    """`vision` and `text` towers in eval mode, fp32, and the shape that they share."""

    def __init__(
        self,
        source: Source,
        shape: ClipShape,
        tensors: Tensors,
        fingerprint: str,
    ) -> None:
        self.name = source.name
        self.defaults = source.defaults  # settings
        self.shape = shape
        self.fingerprint = fingerprint  # of the weights: what caches are keyed by
        self._tensors = tensors

    @property
    def vision(self) -> VisionTower:
        """A tower of its own at each call: its user moves it and changes its precision in place.

        Towers share the checkpoint's memory where they keep its precision.
        """
        mine = {
            name.removeprefix("visual."): tensor
            for name, tensor in self._tensors.items()
            if name.startswith("visual.")
        }
        return _filled(VisionTower, self.shape, mine, f"{self.name} (vision)")

    @functools.cached_property
    def text(self) -> TextTower:
        mine = {name: t for name, t in self._tensors.items() if not name.startswith("visual.")}
        return _filled(TextTower, self.shape, mine, f"{self.name} (text)")


def _filled(kind: type[Tower], shape: ClipShape, tensors: Tensors, origin: str) -> Tower:
    """A tower with the checkpoint's tensors; nothing may be missing, left over or misshapen."""
    with torch.device("meta"):
        tower = kind(shape)
    expected = tower.state_dict()
    given = {name: t for name, t in tensors.items() if t.is_floating_point() and t.ndim > 0}
    missing = sorted(expected.keys() - given.keys())
    extra = sorted(given.keys() - expected.keys() - NOT_OF_A_TOWER)
    if missing or extra:
        what = f"no tensor {missing[0]}" if missing else f"unknown tensor {extra[0]}"
        raise CheckpointError(f"{origin}: not the CLIP that it looks like: {what}")
    for name, tensor in expected.items():
        if given[name].shape != tensor.shape:
            raise CheckpointError(
                f"{origin}: {name} is {tuple(given[name].shape)}, expected {tuple(tensor.shape)}"
            )
    tower.load_state_dict({name: given[name].float() for name in expected}, assign=True)
    return tower.eval().requires_grad_(False)


def open_model(model: str | Path, activation: str | None = None) -> ClipModel:
    """A known name, a path or a hub id -> a model."""
    return read_model(find_source(model), activation)


def read_model(source: Source, activation: str | None = None) -> ClipModel:
    raw = read_tensors(source.weights)
    origin = str(source.weights)
    try:
        chosen = activation_of(raw, source.config, activation, origin)
        tensors = openai_names(raw, origin)
        shape = shape_of(tensors, source.config, chosen, origin)
    except NaclipError:
        raise
    except Exception as error:  # values in a config, or ranks of tensors, that no CLIP has
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CheckpointError(f"{origin}: no CLIP that can be understood ({reason})") from None
    return ClipModel(source, shape, tensors, source.fingerprint())
