"""The two contrastive losses: class token against captions, pooled patches against captions."""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from batches import Batch
from recipe import Recipe
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from naclip.clip.text import TextTower
from naclip.clip.transformer import Block
from naclip.clip.vision import Trace, VisionTower
from naclip.methods.attention import attend, opened
from naclip.settings import METHODS


class TinyClip(nn.Module):
    """Both towers and the temperature; `pool_scale` is the patch loss's own and is not shipped."""

    def __init__(self, vision: VisionTower, text: TextTower) -> None:
        super().__init__()
        self.vision, self.text = vision, text
        self.logit_scale = nn.Parameter(torch.tensor(2.6593))
        self.pool_scale = nn.Parameter(torch.tensor(2.6593))

    def texts(self, batch: Batch) -> Tensor:
        """(texts, E), full captions first."""
        both = [self.text(batch.full), self.text(batch.single)]
        return F.normalize(torch.cat(both).float(), dim=-1)


def class_token(block: Block, x: Tensor, reduced: bool) -> Tensor:
    """The class token behind the last block (B, 1, D), as trained or reduced to its attention."""
    q, k, v = block.attn.qkv(block.ln_1(x))
    attended = block.attn.merge(F.scaled_dot_product_attention(q[:, :, :1], k, v))
    return attended if reduced else block.feed_forward(x[:, :1] + attended)


def patches(vision: VisionTower, trace: Trace, recipe: Recipe) -> Tensor:
    """(B, P, E) features as the method of the recipe reads them."""
    method = dataclasses.replace(METHODS[recipe.patch_path], sigma=recipe.patch_sigma)
    block = vision.blocks[-1]
    return vision.project(attend(opened(block, trace.inputs[-1]), trace.grid, method)[:, 1:])


def pooled(patch_BPE: Tensor, text_TE: Tensor, sharpness: float) -> Tensor:
    """(T, B): for each text and image the cosine, averaged over patches that agree most."""
    cosine = torch.einsum("te,bpe->tbp", text_TE, patch_BPE)
    return ((cosine * sharpness).softmax(-1) * cosine).sum(-1)


def contrast(logits_TB: Tensor, batch: Batch) -> Tensor:
    """InfoNCE both ways. A text that holds for another image is no negative of it."""
    logits_TB = logits_TB.float()
    own = F.one_hot(batch.own, logits_TB.shape[1]).bool()
    logits = logits_TB.masked_fill(batch.true & ~own, float("-inf"))
    to_images = -logits.log_softmax(dim=1)[own].mean()
    # An image has several texts: each is a positive against the negatives alone.
    positive = logits[own]
    negatives = logits.masked_fill(own, float("-inf")).logsumexp(dim=0)[batch.own]
    to_texts = F.softplus(negatives - positive).mean()
    return (to_images + to_texts) / 2


def features(
    model: TinyClip, batch: Batch, recipe: Recipe, reduced: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Texts (T, E), images (B, E) and patches (B, P, E), all of length one in fp32."""
    trace = model.vision.trace(batch.pixels)
    token = class_token(model.vision.blocks[-1], trace.inputs[-1], reduced)
    image = model.vision.project(token)[:, 0]
    return model.texts(batch), image, patches(model.vision, trace, recipe)


def losses(model: TinyClip, batch: Batch, recipe: Recipe, reduced: bool) -> dict[str, Tensor]:
    # The fused attention's backward takes a third of a step at 65 tokens; the plain one does not.
    with (
        sdpa_kernel(SDPBackend.MATH),
        torch.autocast("cpu", torch.bfloat16, enabled=recipe.precision == "bf16"),
    ):
        text, image, patch = features(model, batch, recipe, reduced)
    # Logits in bf16 would be rounded to steps of 0.06 where they matter most.
    parts = {"image": contrast(text @ image.T * model.logit_scale.exp(), batch)}
    if recipe.patch_weight > 0:
        scores = pooled(patch, text, recipe.pool_sharpness)
        parts["patch"] = contrast(scores * model.pool_scale.exp(), batch)
    return parts
