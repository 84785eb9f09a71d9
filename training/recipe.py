"""The settings of a training run, in one place; `train.py --set name=value` changes any of them."""

from __future__ import annotations

from dataclasses import dataclass

from naclip.clip.shape import ClipShape, TowerShape

SHAPE = ClipShape(
    vision=TowerShape(width=192, layers=6, heads=3, hidden=768),
    text=TowerShape(width=128, layers=3, heads=2, hidden=512),
    image_size=64,
    patch=8,
    embedding=192,
)


@dataclass(frozen=True)
class Recipe:
    steps: int = 3600
    decay_steps: int = 1500  # the last steps, over which the rates fall to zero
    batch: int = 96
    seed: int = 1
    warmup: int = 100
    muon_rate: float = 0.01  # matrices of the blocks
    adam_rate: float = 1e-3  # everything else
    token_rate: float = 2e-3  # rows of the token table
    weight_decay: float = 0.02
    reduced_share: float = 0.5  # steps whose class token leaves the last block reduced
    patch_weight: float = 1.0  # of the pooled patch-text loss; 0 is the control
    patch_path: str = "naclip"  # method of naclip.settings whose patches are pooled
    patch_sigma: float = 1.0  # of its Gaussian, patches
    pool_sharpness: float = 12.0  # of the softmax over patches that pools their cosines
    concepts: int = 3  # captions of one concept per image, beside the full one
    threads: int = 1
    precision: str = "bf16"


# What a resumed run may change: none of it alters the steps that are already done, as long as they
# were before the decay.
SCHEDULE = ("steps", "decay_steps", "threads")
