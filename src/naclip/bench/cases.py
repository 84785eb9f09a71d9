"""What is measured, and on what: everything that a worker process needs to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from naclip import engines, windows
from naclip.bench import plain
from naclip.clip.model import ClipModel
from naclip.clip.shape import ClipShape, TowerShape
from naclip.clip.sources import Source
from naclip.clip.text import TextTower, encode_prompts
from naclip.clip.tokens import clip_tokenizer
from naclip.clip.vision import VisionTower
from naclip.device import DTYPES
from naclip.images import Picture, prepare, resized_size
from naclip.maps import ScoreMaps
from naclip.methods import read_patches
from naclip.pipeline import Segmenter
from naclip.settings import Method, Refinement, Settings, Windowing
from naclip.stopwatch import Stopwatch
from naclip.vocabulary import Vocabulary, templates

VIT_B_16 = ClipShape(
    TowerShape(768, 12, 12, 3072), TowerShape(512, 12, 8, 2048), image_size=224, patch=16,
    embedding=512,
)  # fmt: skip
SMALL = ClipShape(TowerShape(192, 4, 3, 768), TowerShape(128, 2, 2, 512), 224, 16, 128)
SHAPES = {"ViT-B/16": VIT_B_16, "small": SMALL}


@dataclass(frozen=True)
class Case:
    """One process's work. Weights are random: labels mean nothing, times are the same."""

    path: str  # plain | ours
    part: str = "image"  # image | tower | after (the transformer) | text | gemm
    shape: str = "ViT-B/16"
    device: str = "cpu"
    engine: str = "torch"
    precision: str = "fp32"
    height: int = 375
    width: int = 500
    names: int = 21
    refine: bool = False
    images: int = 1
    tuned: bool = False  # glibc's allocator told to keep large blocks


Run = Callable[[], dict[str, float]]  # does the work once; seconds by stage where it knows them


def prepared(case: Case) -> Run:
    torch.manual_seed(0)
    parts = {"image": _image, "tower": _tower, "after": _after, "text": _text, "gemm": _gemm}
    return parts[case.part](case)


def random_model(name: str) -> ClipModel:
    shape = SHAPES[name]
    vision, text = VisionTower(shape).state_dict(), TextTower(shape).state_dict()
    tensors = {f"visual.{key}": value for key, value in vision.items()} | text
    return ClipModel(Source(f"random {name}", Path()), shape, tensors, f"bench {name}")


def random_picture(case: Case, seed: int = 0) -> Picture:
    noise = np.random.default_rng(seed).integers(0, 256, (case.height, case.width, 3), np.uint8)
    return Picture(noise, "noise")


def _words(case: Case) -> tuple[Vocabulary, Tensor]:
    names = tuple(f"name {index}" for index in range(case.names))
    vectors = torch.randn(case.names, SHAPES[case.shape].embedding).to(case.device)
    return Vocabulary(names, tuple((name,) for name in names)), vectors / vectors.norm(
        dim=1, keepdim=True
    )


def _settings(case: Case) -> Settings:
    return Settings(refinement=Refinement(case.refine))


def _segmenter(case: Case) -> Segmenter:
    return Segmenter(
        random_model(case.shape),
        case.device,  # type: ignore[arg-type]
        case.precision,  # type: ignore[arg-type]
        case.engine,  # type: ignore[arg-type]
        [random_picture(case, seed=1)] if case.precision == "int8" else [],
    )


def _plan(case: Case) -> windows.Plan:
    size = (case.height, case.width)
    return windows.plan(size, resized_size(*size, Windowing()), Windowing(), 16)


def _image(case: Case) -> Run:
    words, text = _words(case)
    picture, settings = random_picture(case), _settings(case)
    if case.path == "plain":
        shape, tower = SHAPES[case.shape], random_model(case.shape).vision.to(case.device)

        def plainly() -> dict[str, float]:
            raw = prepare(picture, settings.windowing, shape.mean, shape.std, shape.patch)
            pixels = torch.from_numpy(raw).to(case.device)
            plain.segment(tower, pixels, _plan(case), text, case.refine)
            return {}

        return plainly
    segmenter = _segmenter(case)
    pictures = [picture] * case.images

    def ours() -> dict[str, float]:
        watch = Stopwatch()
        with watch("image"):
            encoded = segmenter.encode_many(pictures, settings.windowing, [settings.method])
        maps = []
        with watch("scores"):
            maps = [segmenter.score(each[0], text, words, settings) for each in encoded]
        with watch("refinement and labels" if case.refine else "labels"):
            for each in maps:
                each.decode(lean=True)
        return watch.seconds

    return ours


def _tower(case: Case) -> Run:
    """The transformer alone, on the windows of the image."""
    segmenter = _segmenter(case)
    stack = torch.randn(_plan(case).count * case.images, 3, 224, 224)

    def run() -> dict[str, float]:
        for batch in engines.batches(segmenter.engine, stack, segmenter.vision.patch):
            trace = segmenter.engine.trace(batch.to(case.device, segmenter.engine.dtype), 1)
            read_patches(segmenter.vision, trace, Method())
        return {}

    return run


def _after(case: Case) -> Run:
    """Everything that follows the transformer: from score grids of windows to labels."""
    plan = _plan(case)
    scores = (torch.randn(plan.count, case.names, *plan.grid) * 0.05 + 0.2).to(case.device)
    pixels = torch.randn(3, plan.y.resized, plan.x.resized).to(case.device)

    def plainly() -> dict[str, float]:
        plain.after_transformer(scores.split(1), pixels, plan, case.names, case.refine)
        return {}

    def ours() -> dict[str, float]:
        stitched = windows.stitch(scores, plan)
        names = tuple(range(case.names))
        ScoreMaps(stitched, pixels, Refinement(case.refine), names, 40.0).decode(lean=True)
        return {}

    return plainly if case.path == "plain" else ours


def _text(case: Case) -> Run:
    """80 prompts of one name: cut at the longest prompt, or all 77 tokens of each."""
    tower, tokenizer = random_model(case.shape).text.to(case.device), clip_tokenizer()
    prompts = [template.replace("{}", "dog") for template in templates()]

    def run() -> dict[str, float]:
        if case.path == "plain":
            tower(torch.from_numpy(tokenizer.encode(prompts, tower.context)).to(case.device))
        else:
            encode_prompts(tower, prompts, tokenizer)
        return {}

    return run


GEMM = (6 * 197, 768, 3072)  # the feed-forward of six windows


def _gemm(case: Case) -> Run:
    """A product of the transformer's own shape, ten times: what the cores can do at best."""
    rows, inner, outer = GEMM
    dtype = DTYPES[case.precision]
    x = torch.randn(rows, inner).to(case.device, dtype)
    weight = torch.randn(outer, inner).to(case.device, dtype)

    def run() -> dict[str, float]:
        for _ in range(10):
            if dtype != torch.float32 or case.path == "plain" or case.device != "cpu":
                torch.nn.functional.linear(x, weight)
            else:
                torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
        return {}

    return run
