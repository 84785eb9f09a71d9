"""What the user of an export may choose; each format says what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from naclip.errors import SettingsError, no_such


@dataclass(frozen=True)
class Options:
    instances: bool = False  # every connected part of a class is a region of its own
    min_pixels: int = 1  # parts smaller than this are left out
    polygons: bool = False  # outlines rather than run lengths, where a format has both
    simplify: float = 0.0  # outlines may be this many pixels off; 0: exact

    def __post_init__(self) -> None:
        if self.min_pixels < 1:
            raise SettingsError(f"min_pixels is {self.min_pixels}: use at least 1")
        if not 0 <= self.simplify < float("inf"):
            raise SettingsError(f"simplify is {self.simplify}: use 0 (exact) or some pixels")

    @staticmethod
    def of(given: Mapping[str, Any]) -> Options:
        known = [option.name for option in fields(Options)]
        for name in given:
            if name not in known:
                raise SettingsError(no_such("option", name, known, "naclip.export.options"))
        return Options(**given)


EVERYTHING = Options()  # whole classes, every pixel
