"""CLIP's text transformer, and the ensemble of prompts that turns a name into one vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from naclip.clip.shape import ClipShape
from naclip.clip.tokens import Tokenizer
from naclip.clip.transformer import LayerNorm, Transformer, drawn

PROMPTS_AT_ONCE = 256  # bounds memory: 256 prompts of 77 tokens are 40 MB a layer at width 512


class TextTower(nn.Module):
    def __init__(self, shape: ClipShape) -> None:
        super().__init__()
        width = shape.text.width
        self.context = shape.context
        tokens = drawn(shape.vocabulary, width, std=1.0)
        self.token_embedding = nn.Embedding.from_pretrained(tokens, freeze=False)
        self.positional_embedding = drawn(shape.context, width, std=0.01)
        self.transformer = Transformer(
            width, shape.text.layers, shape.text.heads, shape.text.hidden, shape.activation
        )
        self.ln_final = LayerNorm(width)
        self.text_projection = drawn(width, shape.embedding, std=width**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) token ids -> (B, E) embeddings of the end token, not normalised.

        T may be shorter than the context: attention is causal, so nothing behind the end token
        (the largest id of a row) can change what stands at it.
        """
        x = self.token_embedding(ids) + self.positional_embedding[: ids.shape[1]]
        for block in self.transformer.resblocks:
            x = block(x, causal=True)
        at_end = x[torch.arange(ids.shape[0], device=ids.device), ids.argmax(dim=-1)]
        return self.ln_final(at_end) @ self.text_projection

    @property
    def device(self) -> torch.device:
        return self.positional_embedding.device


@torch.inference_mode()
def encode_prompts(tower: TextTower, prompts: Sequence[str], tokenizer: Tokenizer) -> Tensor:
    """Prompts -> (prompts, E), L2-normalised; batches are cut at their longest prompt: exact."""
    ids = torch.from_numpy(tokenizer.encode(prompts, tower.context))
    ends = ids.argmax(dim=-1)
    features = torch.empty(len(ids), tower.text_projection.shape[1])
    # Prompts of like length together, so that a long one costs only its own batch.
    for batch in ends.argsort(stable=True).split(PROMPTS_AT_ONCE):
        longest = int(ends[batch].max()) + 1
        encoded = tower(ids[batch, :longest].to(tower.device)).float()
        features[batch] = F.normalize(encoded, dim=-1).cpu()
    return features


def encode_names(
    tower: TextTower, names: Sequence[str], templates: Sequence[str], tokenizer: Tokenizer
) -> Tensor:
    """(names, E): each name through all templates, normalised, averaged, normalised again."""
    prompts = [template.replace("{}", name) for name in names for template in templates]
    features = encode_prompts(tower, prompts, tokenizer)
    return F.normalize(features.view(len(names), len(templates), -1).mean(dim=1), dim=-1)
