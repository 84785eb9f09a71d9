"""Every similarity against its formula, written out for one window and one head at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from naclip.clip.transformer import Block
from naclip.clip.vision import Trace, VisionTower
from naclip.errors import SettingsError
from naclip.methods import last_attention, read_by_each, read_patches
from naclip.methods.attention import attend, attention_map, opened
from naclip.methods.neighbourhood import gaussian
from naclip.pipeline import Segmenter
from naclip.settings import METHODS, Method

GRID = (3, 4)
TOKENS = 1 + 3 * 4
SIMILARITIES = ["qk", "kk", "qq", "vv", "qq+kk", "none", "self", "gem"]


@pytest.fixture(scope="module")
def block() -> Block:
    torch.manual_seed(0)
    block = Block(width=32, heads=2, hidden=64, activation="quick_gelu")
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return block.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def tokens() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(2, TOKENS, 32)


def heads_of(block: Block, normed: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """(q, k, v) of each head for one window, from the weights by hand."""
    q, k, v = (normed @ block.attn.in_proj_weight.T + block.attn.in_proj_bias).split(32, dim=-1)
    return [(q[:, s], k[:, s], v[:, s]) for s in (slice(0, 16), slice(16, 32))]


def unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


def weights_by_hand(
    q: Tensor, k: Tensor, v: Tensor, similarity: str, omega: Tensor, t: Tensor
) -> Tensor:
    scale = 16**-0.5
    pairs = {"qk": [(q, k)], "kk": [(k, k)], "qq": [(q, q)], "vv": [(v, v)]}
    pairs["qq+kk"] = [(q, q), (k, k)]
    if similarity == "self":
        return torch.eye(TOKENS)
    if similarity == "none":
        return omega.softmax(dim=-1)
    if similarity == "gem":
        total = torch.zeros(TOKENS, TOKENS)
        for x in map(unit, (q, k, v)):
            once = unit((x @ x.T * t).softmax(dim=-1) @ x)
            total += (once @ once.T * t).softmax(dim=-1)
        return total / 3
    return sum(((a @ b.T) * scale + omega).softmax(dim=-1) for a, b in pairs[similarity])


COMBINATIONS = [
    (similarity, neighbours)
    for similarity in SIMILARITIES
    for neighbours in ("off", "gaussian", "scaled")
    if neighbours == "off" or similarity not in ("self", "gem")  # refused: see test_settings
]


@pytest.mark.parametrize(("similarity", "neighbours"), COMBINATIONS)
def test_attention_matches_its_formula(
    block: Block, tokens: Tensor, similarity: str, neighbours: str
) -> None:
    method = Method(similarity=similarity, neighbours=neighbours, sigma=2.0)  # type: ignore[arg-type]
    for window in tokens:
        normed = block.ln_1(window)
        heads = heads_of(block, normed)
        factor = torch.tensor({"off": 0.0, "gaussian": 1.0}.get(neighbours, 0.0))
        if neighbours == "scaled":  # mean of |q_i| |k_j| over heads and pairs, / sqrt(d)
            products = [q.norm(dim=-1)[:, None] * k.norm(dim=-1) for q, k, _ in heads]
            factor = torch.stack(products).mean() * 16**-0.5
        omega = factor * gaussian(GRID, 2.0, torch.device("cpu"))
        t = normed.norm(dim=-1).mean() * 16**-0.5
        weights = [weights_by_hand(*head, similarity, omega, t) for head in heads]
        outputs = [w @ head[2] for w, head in zip(weights, heads, strict=True)]
        expected = block.attn.out_proj(torch.cat(outputs, dim=-1))
        over = opened(block, window[None])
        ours = attend(over, GRID, method)[0]
        torch.testing.assert_close(ours, expected, rtol=0, atol=2e-5)
        maps = attention_map(over, GRID, method)[0]
        torch.testing.assert_close(maps, torch.stack(weights), rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", METHODS)
def test_windows_do_not_see_each_other(segmenter: Segmenter, name: str) -> None:
    """A batch gives what its windows give alone: temperatures and lengths are per image."""
    method = Method(**{**vars(METHODS[name]), "depth": min(METHODS[name].depth, 3)})
    torch.manual_seed(2)
    pixels = torch.randn(3, 3, 64, 96)
    with torch.inference_mode():
        trace = segmenter.vision.trace(pixels, method.reads)
        together = read_patches(segmenter.vision, trace, method)
        for index, one in enumerate(pixels):
            alone = segmenter.vision.trace(one[None], method.reads)
            mine = read_patches(segmenter.vision, alone, method)[0]
            torch.testing.assert_close(together[index], mine, rtol=0, atol=2e-5)


def test_the_whole_tower_as_trained_is_the_method_clip(segmenter: Segmenter) -> None:
    """Method clip's class token would be CLIP's own: same block, same projection."""
    tower: VisionTower = segmenter.vision
    with torch.inference_mode():
        trace = tower.trace(torch.randn(1, 3, 64, 64))
        x = tower.blocks[-1](trace.inputs[-1])
        ours = read_patches(tower, trace, METHODS["clip"])
    torch.testing.assert_close(ours, tower.project(x)[:, 1:], rtol=0, atol=2e-6)


def test_a_dual_path_deeper_than_the_model_is_refused(segmenter: Segmenter) -> None:
    trace = segmenter.vision.trace(torch.zeros(1, 3, 32, 32), last=6)
    says = "depth 6 of method 'gem' exceeds the model's blocks: use a depth of at most 3"
    with pytest.raises(SettingsError, match=says):
        read_patches(segmenter.vision, trace, METHODS["gem"])


def test_last_attention_rows_sum_to_what_does_not_go_to_the_class_token(block: Block) -> None:
    tower = torch.nn.Module()
    tower.blocks = [block]  # type: ignore[assignment]
    torch.manual_seed(3)
    trace = Trace((torch.randn(1, TOKENS, 32),), GRID)
    for name in ("naclip", "sclip", "maskclip"):
        weights = last_attention(tower, trace, METHODS[name])  # type: ignore[arg-type]
        assert weights.shape == (1, 12, 12)
        assert (weights.sum(dim=-1) <= 1 + 1e-6).all()
        if name == "maskclip":
            torch.testing.assert_close(weights[0], torch.eye(12))


def test_methods_that_are_read_together_give_what_each_gives_alone(segmenter: Segmenter) -> None:
    """Blocks are opened once for all of them: nobody may change what the next one reads."""
    methods = [Method(**{**vars(m), "depth": min(m.depth, 3)}) for m in METHODS.values()]
    torch.manual_seed(4)
    with torch.inference_mode():
        trace = segmenter.vision.trace(torch.randn(2, 3, 64, 96), last=3)
        together = read_by_each(segmenter.vision, trace, methods)
        for method, mine in zip(methods, together, strict=True):
            assert torch.equal(mine, read_patches(segmenter.vision, trace, method)), method.name
