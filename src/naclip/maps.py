"""The score maps of one image: never all held, made in blocks of names whenever they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from naclip import refine, refiners
from naclip.decode import Decoded, decode
from naclip.settings import Refinement
from naclip.windows import Stitched

FLOATS_AT_ONCE = 1 << 25  # of maps at the original size: 128 MB a copy


@dataclass(frozen=True)
class ScoreMaps:
    stitched: Stitched
    pixels: Tensor  # (3, h, w): the normalised, resized image that guides the refinement
    refinement: Refinement
    class_of: tuple[int, ...]  # label of each name
    logit_scale: float

    def blocks(self, names: Sequence[range]) -> Iterator[tuple[int, Tensor]]:
        """(first name, maps (names, H, W)) of some ranges of names, refined if that is asked."""
        height, width = self.stitched.size
        at_once = max(1, FLOATS_AT_ONCE // (height * width))
        stitched, pamr = self._ready()
        weights: Tensor | None = None
        if pamr:
            guide = refine.guidance(self.pixels, (height, width))
            weights = refine.affinity(guide, self.refinement.refine_dilations)
        for span in names:
            for first in range(span.start, span.stop, at_once):
                maps = stitched.maps(first, min(first + at_once, span.stop))
                if weights is not None:
                    maps = refine.refine(maps, weights, self.refinement)
                yield first, maps

    def _ready(self) -> tuple[Stitched, bool]:
        """The scores, and whether PAMR is still to come: it needs no map of all names at once."""
        chosen = self.refinement
        if not chosen.refine or chosen.refiner == "pamr":
            return self.stitched, chosen.refine
        return refiners.refined(self.stitched, self.pixels, chosen, self.logit_scale), False

    def decode(self, lean: bool = False) -> Decoded:
        """Labels and scores. lean: no margin, and no log_classes unless they cost a refinement."""
        if self.stitched.cells_NYX.device.type != "cpu":
            return self.decode_in_torch()
        from naclip.kernels import decoding  # Numba takes a moment to import

        stitched, pamr = self._ready()
        guide = refine.guidance(self.pixels, stitched.size) if pamr else None
        return decoding.decode(
            stitched, guide, self.refinement, self.class_of, self.logit_scale, lean
        )

    def decode_in_torch(self) -> Decoded:
        """The same in plain torch, on any device: the reference of the kernels."""
        blocks = self.blocks([range(len(self.class_of))])
        return decode(blocks, self.class_of, self.logit_scale)

    def probabilities(self, labels: Sequence[int], log_classes: Tensor | None) -> Tensor:
        """(labels, H, W) probabilities of some classes, renormalised over all classes."""
        if log_classes is None:  # of a lean decoding
            log_classes = self.decode().log_classes
        assert log_classes is not None
        largest = torch.full((len(labels), *self.stitched.size), -torch.inf)
        for first, maps in self.blocks([self._names_of(label) for label in labels]):
            for name, scores in enumerate(maps, start=first):
                row = largest[labels.index(self.class_of[name])]
                torch.maximum(row, (scores * self.logit_scale).cpu(), out=row)
        return (largest - log_classes.cpu()).exp()

    def _names_of(self, label: int) -> range:
        count = self.class_of.count(label)
        start = self.class_of.index(label) if count else 0
        return range(start, start + count)
