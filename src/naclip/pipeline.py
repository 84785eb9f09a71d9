"""The method, stage by stage, in the order of the files.

    image -> pixels -> windows -> patch features -> scores -> stitched -> refined -> labels
                                  words -> vectors ---^

Shapes: B windows, N names, E embedding, (h, w) patches of a window, (H, W) the original size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naclip import calibration as calibrating
from naclip import engines, images, refiners, scoring, vocabulary, windows
from naclip.clip.model import ClipModel, open_model
from naclip.clip.names import text_features
from naclip.clip.sources import DEFAULT_MODEL
from naclip.clip.vision import Trace
from naclip.decode import Decoded
from naclip.device import choose_device, choose_precision, memory_errors
from naclip.images import Picture
from naclip.maps import ScoreMaps
from naclip.methods import last_attention, read_by_each
from naclip.results import Report, Segmentation
from naclip.settings import Device, Engine, Method, Precision, Settings, Windowing
from naclip.stopwatch import Stopwatch
from naclip.vocabulary import Vocabulary, Words
from naclip.windows import Plan

if TYPE_CHECKING:
    from naclip.images import ImageSource


@dataclass(frozen=True)
class Encoded:
    """An image as the model sees it under one method; words are yet to come."""

    patches: Tensor  # (B, h*w, E), L2-normalised
    image: Tensor | None  # (B, E) class token's embedding, where the scoring wants it
    grid: tuple[int, int]
    plan: Plan
    pixels: Tensor  # (3, h, w) normalised, resized


class Segmenter:
    """A loaded model: `segmenter(image, classes)` -> Segmentation."""

    def __init__(
        self,
        model: ClipModel,
        device: Device = "auto",
        precision: Precision = "auto",
        engine: Engine = "auto",
        calibration: Sequence[ImageSource] = (),
    ) -> None:
        self.model = model
        self.device = choose_device(device)
        self.precision = choose_precision(precision, self.device)
        self.vision = model.vision
        calibrating.check(self.precision, calibration)
        pictures = calibrating.pictures(calibration)
        self.calibration = calibrating.digest(pictures)
        self.engine = engines.start(
            *(engine, self.precision, self.device, self.vision, model.fingerprint),
            [self._windows(picture, model.defaults.windowing)[0] for picture in pictures],
        )

    def __call__(
        self,
        image: ImageSource,
        classes: Words,
        *,
        background: bool | Sequence[str] | None = None,
        settings: Settings | None = None,
        templates: Sequence[str] | None = None,
        **options: Any,
    ) -> Segmentation:
        """Label every pixel of an image with one of the classes.

        classes     a list of words, "sofa=couch,settee" for synonyms; or a Vocabulary
        background  words for what is none of them; True: the 26 of the VOC21 benchmark
        options     any field of Settings: method, sigma, window, refine, threshold, ...
        """
        chosen = (settings or self.model.defaults).updated(**options)
        words = vocabulary.complete(classes, background, chosen.decoding.threshold)
        picture = images.load(image)
        with memory_errors(picture.name):
            return self._segment(picture, words, chosen, templates)

    def ran_on(self) -> dict[str, str]:
        """What, beside weights and settings, decides about the last bit of a result."""
        return {
            "precision": self.precision,
            "device": str(self.device),
            "engine": self.engine.name,
            "calibration": self.calibration,
        }

    @torch.inference_mode()
    def _segment(
        self,
        picture: Picture,
        words: Vocabulary,
        settings: Settings,
        templates: Sequence[str] | None,
    ) -> Segmentation:
        watch = Stopwatch()
        with watch("image"):
            encoded = self.encode(picture, settings.windowing, [settings.method])[0]
        return self.name_pixels(picture, encoded, words, settings, templates, watch)

    @torch.inference_mode()
    def name_pixels(
        self,
        picture: Picture,
        encoded: Encoded,
        words: Vocabulary,
        settings: Settings,
        templates: Sequence[str] | None = None,
        watch: Stopwatch | None = None,
        text: Tensor | None = None,
    ) -> Segmentation:
        """Words for an image that is encoded already: other words on it cost little.

        text    what `words` returns for them, where many images share it
        """
        watch = watch or Stopwatch()
        with watch("words"):
            text = self.words(words, templates) if text is None else text
        with watch("scores"):
            maps = self.score(encoded, text, words, settings)
        with watch("refinement and labels" if settings.refinement.refine else "labels"):
            decoded = maps.decode(lean=True)
        report = Report(
            model=self.model.name,
            settings=settings.flat(),
            refined=settings.refinement.refine,
            windows=encoded.plan.count,
            resized=(encoded.pixels.shape[1], encoded.pixels.shape[2]),
            **self.ran_on(),
            seconds=watch.seconds,
            notes=picture.notes + refiners.notes(picture.size, settings.refinement),
        )
        return _result(picture, words, settings.decoding.threshold, maps, decoded, report)

    def words(self, words: Vocabulary, templates: Sequence[str] | None = None) -> Tensor:
        """(N, E) a vector for each name: the mean over prompts, cached on disk."""
        chosen = vocabulary.templates()
        if templates is not None:
            chosen = vocabulary.checked_templates(templates)
        return text_features(self.model, words.prompts, chosen).to(self.device)

    def encode(
        self, picture: Picture, windowing: Windowing, methods: Sequence[Method]
    ) -> list[Encoded]:
        """The image through the vision tower, once, read by each of the methods."""
        return self.encode_many([picture], windowing, methods)[0]

    @torch.inference_mode()
    def encode_many(
        self, pictures: Sequence[Picture], windowing: Windowing, methods: Sequence[Method]
    ) -> list[list[Encoded]]:
        """Pictures whose windows have one size go through the tower together; [picture][method]."""
        cut, plans, pixels = zip(
            *(self._windows(picture, windowing) for picture in pictures), strict=True
        )
        stack = torch.cat(cut)
        patches: list[list[Tensor]] = [[] for _ in methods]
        image: list[Tensor] = []
        for batch in engines.batches(self.engine, stack, self.vision.patch):
            last = max(method.reads for method in methods)
            trace = self.engine.trace(batch.to(self.engine.dtype), last)
            for mine, read in zip(patches, read_by_each(self.vision, trace, methods), strict=True):
                mine.append(read)
            if any(method.scoring == "surgery" for method in methods):
                image.append(self.vision.class_token(trace))
        counts = [plan.count for plan in plans]
        of_method = [torch.cat(mine).split(counts) for mine in patches]
        cls = torch.cat(image).split(counts) if image else [None] * len(plans)
        return [
            [Encoded(mine[index], cls[index], plan.grid, plan, small) for mine in of_method]
            for index, (plan, small) in enumerate(zip(plans, pixels, strict=True))
        ]

    def _windows(self, picture: Picture, windowing: Windowing) -> tuple[Tensor, Plan, Tensor]:
        """(B, 3, h, w) windows, where they lie, and the pixels that they are cut from."""
        pixels = self._pixels(picture, windowing)
        resized = (pixels.shape[1], pixels.shape[2])
        plan = windows.plan(picture.size, resized, windowing, self.model.shape.patch)
        return windows.cut(pixels, plan), plan, pixels

    def _pixels(self, picture: Picture, windowing: Windowing) -> Tensor:
        shape = self.model.shape
        prepared = images.prepare(picture, windowing, shape.mean, shape.std, smallest=shape.patch)
        pixels = torch.from_numpy(prepared)
        if self.device.type == "cuda":  # the copy need not wait for the GPU
            return pixels.pin_memory().to(self.device, non_blocking=True)
        return pixels.to(self.device)

    @torch.inference_mode()
    def attention(
        self, image: ImageSource, windowing: Windowing, methods: Sequence[Method]
    ) -> list[NDArray[np.float32]]:
        """For each method (h, w, h, w): what patch (row, column) attends to in the last block.

        The whole resized image at once, as the paper's Figure 1 shows it.
        """
        return self.attention_of(self.trace_whole(images.load(image), windowing), methods)

    @torch.inference_mode()
    def trace_whole(self, picture: Picture, windowing: Windowing) -> Trace:
        """What enters the last block where the image goes through the tower as one window."""
        return self.vision.trace(self._pixels(picture, windowing)[None].to(self.engine.dtype))

    @torch.inference_mode()
    def attention_of(self, trace: Trace, methods: Sequence[Method]) -> list[NDArray[np.float32]]:
        return [
            last_attention(self.vision, trace, method)[0]
            .float()
            .reshape(*trace.grid, *trace.grid)
            .cpu()
            .numpy()
            for method in methods
        ]

    def score(
        self, encoded: Encoded, text: Tensor, words: Vocabulary, settings: Settings
    ) -> ScoreMaps:
        """Patches x words, stitched: score maps that are made when they are read."""
        if settings.method.scoring == "surgery" and encoded.image is not None:
            scores = scoring.surgery(encoded.patches, text, encoded.grid, encoded.image)
        else:
            scores = scoring.cosine(encoded.patches, text, encoded.grid)
        scoring.require_numbers(scores, self.model.name, self.precision)
        stitched = windows.stitch(scores, encoded.plan)
        scale = settings.decoding.logit_scale
        return ScoreMaps(stitched, encoded.pixels, settings.refinement, words.class_of, scale)


def _result(
    picture: Picture,
    words: Vocabulary,
    threshold: float,
    maps: ScoreMaps,
    decoded: Decoded,
    report: Report,
) -> Segmentation:
    def probabilities(labels: Sequence[int]) -> NDArray[np.float32]:
        with torch.inference_mode():
            return maps.probabilities(labels, decoded.log_classes).numpy()

    smallest = np.uint8 if len(words.classes) < 256 else np.uint16
    return Segmentation(
        labels=decoded.thresholded(threshold).cpu().numpy().astype(smallest, copy=False),
        classes=words.classes,
        scores=decoded.score.cpu().numpy(),
        report=report,
        has_background=words.has_background,
        image=picture.rgb,
        _probabilities_of=probabilities,
        name=picture.name,
    )


def load(
    model: str | Path = DEFAULT_MODEL,
    *,
    device: Device = "auto",
    precision: Precision = "auto",
    engine: Engine = "auto",
    activation: str | None = None,
    calibration: Sequence[ImageSource] = (),
) -> Segmenter:
    """A segmenter with the weights of a known model, a checkpoint's path, or a hub id.

    engine       what runs the frozen blocks: naclip.engines
    precision    auto is fp32, the paper's; bf16 and int8 are faster and change some labels
    calibration  images, or folders of them, like those to come: what int8 takes its ranges from
    """
    return Segmenter(open_model(model, activation), device, precision, engine, calibration)
