"""POST /v1/segment, /v1/embed, /v1/attention: a request parsed, put through the model, answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from fastapi import APIRouter, Request
from numpy.typing import NDArray
from starlette.responses import Response

from naclip import vocabulary
from naclip.clip.names import text_features
from naclip.errors import NaclipError
from naclip.images import Picture
from naclip.pipeline import Encoded
from naclip.results import palette
from naclip.serve import answers, asked, body, openapi
from naclip.serve.fields import AttentionFields, EmbedFields, SegmentFields
from naclip.serve.problems import Problem, of_error
from naclip.serve.service import Service
from naclip.serve.worker import Work
from naclip.settings import Settings
from naclip.vocabulary import Vocabulary

router = APIRouter(prefix="/v1")
Check = Callable[[], None]
NAMES_AT_ONCE = 16  # between two looks at the clock; a name is 80 prompts


def service_of(request: Request) -> Service:
    found = request.app.state.service
    assert isinstance(found, Service)
    return found


@router.post("/segment", **openapi.route("segment", SegmentFields))
async def segment(request: Request) -> Response:
    """Label every pixel of an image with one of the words."""
    service = service_of(request)
    async with service.slot():
        raw = await body.read(request, service.limits)
        fields, files = await body.fields(request, raw, SegmentFields)
        chosen: Any = fields
        form = _format(fields, request)
        settings = asked.settings(fields, service.segmenter.model.defaults, service.limits)
        words = asked.words(fields, settings.decoding.threshold, service.limits)
        picture, image_id = await service.picture(files, chosen.image_id)
        work = plan(service, picture, image_id, words, settings, fields, form)
        content, media_type = await service.result(request, work)
        request.scope["naclip.fields"] = {
            "cached": work.cached,
            "names": len(words.prompts),
            "accepted": service.accepted,
        }
        cached = "hit" if work.cached else "miss"
        return Response(content, media_type=media_type, headers={"X-Naclip-Cache": cached})


def plan(
    service: Service,
    picture: Picture,
    image_id: str,
    words: Vocabulary,
    settings: Settings,
    fields: Any,
    form: str,
    urgent: bool = True,
) -> Work:
    """The work of one image that is answered in one of the service's own forms."""
    segmenter = service.segmenter
    templates = vocabulary.templates(fields.templates)

    def answer(encoded: Encoded, check: Check) -> tuple[bytes, str]:
        if form == "maps":
            bundle = _maps(service, encoded, words, settings, templates, image_id, check)
            return bundle, answers.MAPS
        result = segmenter.name_pixels(picture, encoded, words, settings, templates)
        check()
        if form == "mask":
            return answers.mask_png(result), "image/png"
        if form == "overlay":
            return answers.overlay_png(result, fields.opacity), "image/png"
        found = answers.document(result, fields.rle, {"image_id": image_id})
        return json.dumps(found).encode(), "application/json"

    return work_of(service, (picture, image_id), words, settings, templates, answer, urgent)


def work_of(
    service: Service,
    picture: tuple[Picture, str],
    words: Vocabulary,
    settings: Settings,
    templates: tuple[str, ...],
    answer: Callable[[Encoded, Check], Any],
    urgent: bool = True,
) -> Work:
    """What an image's work depends on; its names are encoded before `answer` of its features."""
    limits, model = service.limits, service.segmenter.model
    size = picture[0].size
    reading = asked.reading(size, settings, model.shape.patch, limits)
    asked.check_values(size, len(words.prompts), limits)

    def finish(encoded: Encoded | None, check: Check) -> Any:
        assert encoded is not None
        for first in range(0, len(words.prompts), NAMES_AT_ONCE):
            check()  # unknown names cost the most: they are encoded in parts, then remembered
            try:
                text_features(model, words.prompts[first : first + NAMES_AT_ONCE], templates)
            except NaclipError as error:  # a name of more tokens than CLIP reads
                raise of_error(error, "classes") from None
        check()
        return answer(encoded, check)

    return service.work(picture, reading, finish, urgent)


@torch.inference_mode()
def _maps(
    service: Service,
    encoded: Encoded,
    words: Vocabulary,
    settings: Settings,
    templates: tuple[str, ...],
    image_id: str,
    check: Check,
) -> bytes:
    segmenter = service.segmenter
    text = segmenter.words(words, templates)
    maps = segmenter.score(encoded, text, words, settings)
    decoded = maps.decode()
    count = len(words.classes) + (not words.has_background)

    def heat(label: int) -> NDArray[np.float32]:
        check()
        return maps.probabilities([label], decoded.log_classes)[0].cpu().numpy()

    header = {
        # As with a background, which a threshold in the browser may bring at any time.
        "colours": palette(count, background=True)[count - len(words.classes) :].tolist(),
        "classes": list(words.classes),
        "names": [list(names) for names in words.names],
        "has_background": words.has_background,
        "image_id": image_id,
        "model": segmenter.model.name,
        "settings": settings.flat(),
    }
    return answers.maps_bundle(
        header,
        decoded.labels.cpu().numpy(),
        decoded.score.cpu().numpy(),
        decoded.probability.cpu().numpy(),
        heat,
    )


def _format(fields: Any, request: Request) -> str:
    if fields.format:
        return str(fields.format)
    accept = request.headers.get("accept", "*/*").lower()
    kinds = [part.partition(";")[0].strip() for part in accept.split(",")]
    known = {
        "application/json": "json",
        "image/png": "mask",
        answers.MAPS: "maps",
        "*/*": "json",
        "application/*": "json",
        "image/*": "mask",
    }
    chosen = next((known[kind] for kind in kinds if kind in known), None)
    if chosen is None:
        raise Problem(406, f"accept {accept[:100]}: the answers are {', '.join(list(known)[:3])}")
    return chosen


@router.post("/embed", **openapi.route("embed", EmbedFields))
async def embed(request: Request) -> Response:
    """Patch features of an image, window by window, L2-normalised."""
    service = service_of(request)
    async with service.slot():
        raw = await body.read(request, service.limits)
        fields, files = await body.fields(request, raw, EmbedFields)
        chosen: Any = fields
        segmenter = service.segmenter
        settings = asked.settings(fields, segmenter.model.defaults, service.limits)
        picture, image_id = await service.picture(files, chosen.image_id)
        patch = segmenter.model.shape.patch
        reading = asked.reading(picture.size, settings, patch, service.limits)

        def finish(encoded: Encoded | None, check: Check) -> Response:
            assert encoded is not None
            extra = {
                "image_id": image_id,
                "model": segmenter.model.name,
                "settings": settings.flat(),
            }
            return answers.embedding(encoded, extra, chosen.format == "npy")

        answer = await service.result(request, service.work((picture, image_id), reading, finish))
        assert isinstance(answer, Response)
        return answer


@router.post("/attention", **openapi.route("attention", AttentionFields))
async def attention(request: Request) -> dict[str, Any]:
    """What one patch attends to in the last block, under several methods."""
    service = service_of(request)
    async with service.slot():
        raw = await body.read(request, service.limits)
        fields, files = await body.fields(request, raw, AttentionFields)
        chosen: Any = fields
        segmenter = service.segmenter
        base = segmenter.model.defaults.updated(whole=True)
        settings = asked.settings(fields, base, service.limits)
        methods = asked.methods(chosen.methods, chosen.sigma, segmenter.model.defaults)
        picture, image_id = await service.picture(files, chosen.image_id)
        patch = segmenter.model.shape.patch
        window = asked.reading(picture.size, settings, patch, service.limits).window
        grid = (window[0] // patch, window[1] // patch)
        row, column = _patch(chosen, grid)

        def finish(_: Encoded | None, check: Check) -> list[list[list[float]]]:
            key = ("trace", image_id, settings.windowing)
            trace = service.memory.get(key)
            if trace is None:
                trace = segmenter.trace_whole(picture, settings.windowing)
                service.memory.put(key, trace)
            check()
            maps = segmenter.attention_of(trace, methods)
            return [found[row, column].round(7).tolist() for found in maps]

        weights = await service.result(request, service.work((picture, image_id), None, finish))
        return {
            "image_id": image_id,
            "grid": {"rows": grid[0], "columns": grid[1]},
            "patch": {"row": row, "column": column},
            "sigma": settings.method.sigma,
            "weights": [
                {"method": method.name, "rows": rows}
                for method, rows in zip(methods, weights, strict=True)
            ],
        }


def _patch(fields: Any, grid: tuple[int, int]) -> tuple[int, int]:
    chosen = []
    for name, asked_for, count in zip(
        ("row", "column"), (fields.row, fields.column), grid, strict=True
    ):
        value = count // 2 if asked_for is None else asked_for
        if value >= count:
            raise Problem(422, f"{name} is {value}: the image has {count}", field=name)
        chosen.append(value)
    return chosen[0], chosen[1]
