"""Validated fields -> words, settings and the cost of a request, or the field at fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from naclip import images, vocabulary, windows
from naclip.errors import NaclipError, no_such
from naclip.images import Picture
from naclip.serve.limits import Limits
from naclip.serve.problems import Problem, of_error, unprocessable
from naclip.serve.worker import Reading
from naclip.settings import Settings, find_method, find_preset, options
from naclip.vocabulary import BENCHMARKS, Vocabulary

SETTINGS = ("method", *(part.name for _, part in options()))


def settings(fields: BaseModel, base: Settings, limits: Limits) -> Settings:
    """The model's defaults, or a preset's settings, with the request's changes."""
    values = fields.model_dump(include=set(SETTINGS), exclude_none=True)
    changes = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    preset = getattr(fields, "preset", None)
    try:
        start = find_preset(preset) if preset else base
    except NaclipError as error:
        raise of_error(error, "preset") from None
    try:
        chosen = start.updated(**changes)
    except NaclipError as error:
        raise of_error(error, _at_fault(start, changes, error)) from None
    steps = chosen.refinement.refine_steps
    if steps > limits.max_refine_steps:
        detail = f"refine_steps is {steps}: the limit is {limits.max_refine_steps}"
        raise unprocessable(detail, "refine_steps")
    if len(chosen.refinement.refine_dilations) > 4:
        raise unprocessable("more than 4 refine_dilations", "refine_dilations")
    return chosen


def _at_fault(start: Settings, changes: dict[str, Any], error: NaclipError) -> str:
    """The change that fails alone; where two contradict each other, the one named first."""
    for name, value in changes.items():
        try:
            start.updated(**{name: value})
        except NaclipError:
            return name
    first = str(error).split(" ", 1)[0]
    return first if first in changes else next(iter(changes), "")


def words(fields: Any, threshold: float, limits: Limits) -> Vocabulary:
    """Classes or a known vocabulary: never a path of the client's."""
    title = fields.vocabulary or fields.preset
    if fields.classes and fields.vocabulary:
        raise unprocessable("classes and a vocabulary are given: choose one", "vocabulary")
    if fields.vocabulary and fields.vocabulary not in BENCHMARKS:
        detail = no_such("vocabulary", fields.vocabulary, BENCHMARKS, "/v1/vocabularies")
        raise unprocessable(detail, "vocabulary")
    if len(fields.classes or ()) > limits.max_classes:
        detail = f"{len(fields.classes):,} classes: the limit is {limits.max_classes:,}"
        raise unprocessable(detail, "classes")
    _check_length("classes", fields.classes, limits)
    _check_length("background", fields.background, limits)
    try:
        given = vocabulary.load(title) if title and not fields.classes else None
        found = given or vocabulary.parse(fields.classes or [])
    except NaclipError as error:
        raise of_error(error, "classes") from None
    return bounded(found, fields.background, threshold, limits)


def _check_length(field: str, texts: Any, limits: Limits) -> None:
    """Before the words are parsed: as many characters as the most names of the most length."""
    length = sum(map(len, texts)) if isinstance(texts, list) else 0
    most = limits.max_classes * (limits.max_name + 1)
    if length > most:
        raise unprocessable(f"{field}: {length:,} characters: the limit is {most:,}", field)


def bounded(
    found: Vocabulary, background: bool | Sequence[str] | None, threshold: float, limits: Limits
) -> Vocabulary:
    """With the background that is asked for, and not more names than the service lets."""
    try:
        complete = vocabulary.complete(found, background, threshold)
    except NaclipError as error:
        raise of_error(error, "background" if background else "classes") from None
    if len(complete.prompts) > limits.max_classes:
        detail = f"{len(complete.prompts):,} names: the limit is {limits.max_classes:,}"
        raise unprocessable(detail, "classes")
    long = next((name for name in complete.prompts if len(name) > limits.max_name), "")
    if long:
        detail = f"a name of {len(long)} characters: the limit is {limits.max_name}"
        raise unprocessable(detail, "classes")
    return complete


def picture(data: bytes, limits: Limits) -> Picture:
    """The file decoded, after its announced size was checked."""
    try:
        return images.load(data, limits.max_pixels)
    except NaclipError as error:
        large = "limit" in str(error)
        raise Problem(413 if large else 422, str(error), field="image") from None
    except Exception as error:  # whatever else a decoder makes of a hostile file
        detail = f"image: damaged ({type(error).__name__})"
        raise unprocessable(detail, "image") from None


def reading(size: tuple[int, int], chosen: Settings, patch: int, limits: Limits) -> Reading:
    """What the features depend on; refuses what would take too long or too much memory."""
    windowing = chosen.windowing
    plan = windows.plan(size, fitting(size, windowing, patch), windowing, patch)
    pixels = plan.count * plan.window[0] * plan.window[1]
    if pixels > limits.max_window_pixels:
        raise unprocessable(
            f"{plan.count} windows of {plan.window[1]}x{plan.window[0]} are {pixels:,} pixels: the "
            f"limit is {limits.max_window_pixels:,}; use a smaller short_side or a larger stride",
            "short_side" if windowing.whole else "stride",
        )
    tokens = plan.grid[0] * plan.grid[1]
    if tokens > limits.max_tokens:
        raise unprocessable(
            f"a window of {tokens:,} patches: the limit is {limits.max_tokens:,}; use a smaller "
            "short_side or window",
            "short_side" if windowing.whole else "window",
        )
    return Reading(windowing, chosen.method, plan.window)


def fitting(size: tuple[int, int], windowing: Any, patch: int) -> tuple[int, int]:
    """The size that the model sees, at least a patch each way."""
    resized = images.resized_size(*size, windowing)
    side = min(*resized, windowing.window) if not windowing.whole else min(resized)
    if side < patch:
        raise unprocessable(
            f"an image of {size[1]}x{size[0]} would be read as {resized[1]}x{resized[0]} in "
            f"windows narrower than one patch of {patch} pixels: use a larger image, short_side, "
            "long_side or window",
            "image",
        )
    return resized


def check_values(size: tuple[int, int], names: int, limits: Limits) -> None:
    values = size[0] * size[1] * names
    if values > limits.max_values:
        raise unprocessable(
            f"{names} names on {size[1]}x{size[0]} pixels are {values:,} values: the limit is "
            f"{limits.max_values:,}; use fewer classes or a smaller image",
            "classes",
        )


def methods(names: Sequence[str], sigma: float | None, base: Settings) -> list[Any]:
    try:
        changes = {} if sigma is None else {"sigma": sigma}
        return [base.updated(method=find_method(name).name, **changes).method for name in names]
    except NaclipError as error:
        field = "sigma" if "sigma" in str(error) else "methods"
        raise of_error(error, field) from None
