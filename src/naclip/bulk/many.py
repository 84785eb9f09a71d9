"""Several pictures through the model together, the same words for all of them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from naclip import images
from naclip.device import memory_errors
from naclip.errors import FailureError
from naclip.images import Picture
from naclip.pipeline import Encoded, Segmenter
from naclip.results import Segmentation
from naclip.settings import Settings, Windowing
from naclip.vocabulary import Vocabulary


class Many:
    def __init__(
        self, segmenter: Segmenter, words: Vocabulary, text: Tensor, settings: Settings
    ) -> None:
        self.segmenter = segmenter
        self.words = words
        self.text = text.to(segmenter.device)  # (N, E)
        self.settings = settings

    @torch.inference_mode()
    def segment(
        self, pictures: Mapping[int, Picture]
    ) -> tuple[dict[int, Segmentation], dict[int, str]]:
        """By the pictures' keys: results, and why there is none."""
        failed: dict[int, str] = {}
        results: dict[int, Segmentation] = {}
        for group in same_windows(pictures, self.settings.windowing):
            encoded = self._encode({at: pictures[at] for at in group}, failed)
            for at, patches in encoded.items():
                try:
                    results[at] = self._name_pixels(pictures[at], patches)
                except FailureError as error:
                    failed[at] = str(error)
        return results, failed

    def _encode(
        self, pictures: Mapping[int, Picture], failed: dict[int, str]
    ) -> dict[int, Encoded]:
        """All at once; one by one where that fails, to find the image that it is due to."""
        try:
            return self._encode_together(pictures)
        except FailureError as error:
            if len(pictures) == 1:
                failed |= dict.fromkeys(pictures, str(error))
                return {}
        encoded: dict[int, Encoded] = {}
        for at, picture in pictures.items():
            encoded |= self._encode({at: picture}, failed)
        return encoded

    def _encode_together(self, pictures: Mapping[int, Picture]) -> dict[int, Encoded]:
        with memory_errors(next(iter(pictures.values())).name):
            encoded = self.segmenter.encode_many(
                list(pictures.values()), self.settings.windowing, [self.settings.method]
            )
        return {at: one[0] for at, one in zip(pictures, encoded, strict=True)}

    def _name_pixels(self, picture: Picture, encoded: Encoded) -> Segmentation:
        with memory_errors(picture.name):
            return self.segmenter.name_pixels(
                picture, encoded, self.words, self.settings, text=self.text
            )


def same_windows(pictures: Mapping[int, Picture], windowing: Windowing) -> list[list[int]]:
    """Keys of pictures whose windows have one size: those may be encoded together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for at, picture in pictures.items():
        height, width = images.resized_size(*picture.size, windowing)
        if not windowing.whole:
            height, width = min(height, windowing.window), min(width, windowing.window)
        groups.setdefault((height, width), []).append(at)
    return list(groups.values())
