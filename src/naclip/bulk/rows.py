"""Segmentation as a step of one's own Ray Data pipeline, or of anything that maps batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naclip import images, vocabulary
from naclip.bulk.many import Many
from naclip.clip.sources import DEFAULT_MODEL
from naclip.errors import ImageError, UsageError
from naclip.images import Picture
from naclip.pipeline import load
from naclip.settings import Device, Engine, Precision, Settings
from naclip.vocabulary import Words

NOTHING = np.zeros((0, 0), np.uint8)


class BatchSegmenter:
    """A batch's column of images -> columns mask, coverage and error besides it.

        data.map_batches(
            naclip.BatchSegmenter,
            fn_constructor_kwargs={"classes": ["road", "car"], "model": "ViT-B/16"},
            batch_size=8, concurrency=4,
        )

    column    holds arrays (H, W, 3), encoded bytes, or paths
    mask      (H, W) labels; 0 x 0 where there is an error
    coverage  share of each class, in label order; NaN where there is an error
    """

    def __init__(
        self,
        classes: Words,
        *,
        column: str = "image",
        background: bool | Sequence[str] | None = None,
        settings: Settings | None = None,
        templates: Sequence[str] | None = None,
        model: str | Path = DEFAULT_MODEL,
        device: Device = "auto",
        precision: Precision = "auto",
        engine: Engine = "auto",
        activation: str | None = None,
        calibration: Sequence[str | Path] = (),
        **options: Any,
    ) -> None:
        segmenter = load(
            model,
            device=device,
            precision=precision,
            engine=engine,
            activation=activation,
            calibration=calibration,
        )
        chosen = (settings or segmenter.model.defaults).updated(**options)
        words = vocabulary.complete(classes, background, chosen.decoding.threshold)
        self.column = column
        self.classes = words.classes
        self._many = Many(segmenter, words, segmenter.words(words, templates), chosen)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        if self.column not in batch:
            known = ", ".join(batch)
            raise UsageError(f"no column {self.column!r}: there are {known}; name one with column=")
        pictures: dict[int, Picture] = {}
        failed: dict[int, str] = {}
        for at, image in enumerate(batch[self.column]):
            try:
                pictures[at] = images.load(image)
            except ImageError as error:
                failed[at] = str(error)
        results, unfit = self._many.segment(pictures)
        failed |= unfit
        count = len(batch[self.column])
        masks: NDArray[Any] = np.empty(count, object)  # sizes differ
        coverage = np.full((count, len(self.classes)), np.nan)
        for at in range(count):
            masks[at] = results[at].labels if at in results else NOTHING
            if at in results:
                coverage[at] = list(results[at].coverage.values())
        errors = np.array([failed.get(at, "") for at in range(count)], object)
        return {**batch, "mask": masks, "coverage": coverage, "error": errors}
