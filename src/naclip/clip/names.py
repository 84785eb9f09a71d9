"""Names -> vectors, through the text tower only for those never asked before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import torch
from torch import Tensor

from naclip import cache
from naclip.clip.model import ClipModel
from naclip.clip.text import encode_names
from naclip.clip.tokens import clip_tokenizer


def text_features(model: ClipModel, names: Sequence[str], templates: Sequence[str]) -> Tensor:
    """(names, E), L2-normalised. Cached on disk by weights, shape, templates and name."""
    # The shape, too: heads and activation come from a config that is not part of the weights.
    recipe = json.dumps([model.fingerprint, repr(model.shape), *templates])
    prefix = "text " + hashlib.sha256(recipe.encode()).hexdigest()
    keys = [f"{prefix} {name}" for name in names]
    size = 4 * model.shape.embedding
    vectors = {key: row for key, row in cache.get(keys).items() if len(row) == size}
    unknown = {name: key for name, key in zip(names, keys, strict=True) if key not in vectors}
    if unknown:
        encoded = encode_names(model.text, list(unknown), templates, clip_tokenizer())
        rows = encoded.numpy()
        fresh = {key: row.tobytes() for key, row in zip(unknown.values(), rows, strict=True)}
        cache.put(fresh)
        vectors |= fresh
    joined = bytearray(b"".join(vectors[key] for key in keys))
    return torch.frombuffer(joined, dtype=torch.float32).view(len(keys), -1)
