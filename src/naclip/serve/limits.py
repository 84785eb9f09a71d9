"""Every bound that the service keeps, typed once; options of `naclip serve` derive from it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from naclip.errors import SettingsError


def limit(default: Any, help: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Limits:
    max_bytes: int = limit(32_000_000, "Of a request's body; larger ones get 413")
    max_pixels: int = limit(25_000_000, "Of an image, checked before it is decoded")
    max_classes: int = limit(1_000, "Classes, and names with all synonyms, of a request")
    max_name: int = limit(200, "Characters of a name")
    max_window_pixels: int = limit(8_000_000, "Pixels that all windows of an image have together")
    max_tokens: int = limit(4_096, "Patches of one window: attention grows with their square")
    max_values: int = limit(2_000_000_000, "Names times pixels of an image")
    max_refine_steps: int = limit(50, "Steps of the refinement")
    queue: int = limit(64, "Requests accepted and not yet answered; more get 429")
    batch: int = limit(4, "Images that go through the model together")
    cache_bytes: int = limit(256_000_000, "Of image features and images remembered")
    request_seconds: float = limit(60.0, "A request's time in the queue and the model")
    body_seconds: float = limit(30.0, "A request's body must arrive within this time")
    grace_seconds: float = limit(30.0, "At the end: time to finish what was accepted")
    jobs: int = limit(16, "Batch jobs kept, finished ones included")
    job_images: int = limit(100, "Images of a batch job")
    job_seconds: float = limit(600.0, "A finished job's results are kept this long")

    def __post_init__(self) -> None:
        for part in dataclasses.fields(self):
            value = getattr(self, part.name)
            if not value > 0:
                raise SettingsError(f"{part.name} is {value}: use a number above 0")
