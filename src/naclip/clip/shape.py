"""The dimensions of a CLIP model: what a checkpoint must say, or what is read off its tensors."""

from __future__ import annotations

from dataclasses import dataclass

OPENAI_MEAN = (122.771, 116.746, 104.094)  # of RGB in 0..255, as the paper's program rounds them
OPENAI_STD = (68.501, 66.632, 70.323)


@dataclass(frozen=True)
class TowerShape:
    width: int
    layers: int
    heads: int
    hidden: int  # width of the feed-forward


@dataclass(frozen=True)
class ClipShape:
    vision: TowerShape
    text: TowerShape
    image_size: int  # side of the training images, pixels
    patch: int  # side of a patch, pixels
    embedding: int  # dimension that both towers project to
    vocabulary: int = 49408
    context: int = 77
    activation: str = "quick_gelu"
    mean: tuple[float, float, float] = OPENAI_MEAN
    std: tuple[float, float, float] = OPENAI_STD

    @property
    def grid(self) -> int:
        """Patches along a side of a training image."""
        return self.image_size // self.patch
