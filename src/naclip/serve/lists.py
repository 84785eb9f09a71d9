"""GET /v1/models, methods, vocabularies, examples: what can be asked for."""

from __future__ import annotations

import functools
import io
from typing import Any

from fastapi import APIRouter, Request
from PIL import Image
from starlette.responses import Response

from naclip import vocabulary
from naclip.clip.sources import MODELS
from naclip.serve.openapi import problems
from naclip.serve.problems import Problem
from naclip.serve.service import Service
from naclip.settings import METHODS, METHODS_ABOUT
from naclip.synthetic import CLASSES, draw

router = APIRouter(prefix="/v1", responses=problems(401, 403))
SCENES = {"meadow": 13, "shore": 27, "snow": 5, "desert": 39, "lawn": 32, "pond": 9}
SIZE, SCALE = (96, 128), 4  # as naclip demo draws them, at twice the pixels


@router.get("/models", operation_id="models")
async def models(request: Request) -> dict[str, Any]:
    """The model that is served, its settings, and the models known by name."""
    service: Service = request.app.state.service
    model = service.segmenter.model
    return {
        "served": {
            "model": model.name,
            "patch": model.shape.patch,
            "settings": model.defaults.flat(),
            "precision": service.segmenter.precision,
            "device": str(service.segmenter.device),
        },
        "limits": vars(service.limits),
        "known": [
            {"model": known.name, "megabytes": known.megabytes, "about": known.about}
            for known in MODELS.values()
        ],
    }


@router.get("/methods", operation_id="methods")
async def methods() -> list[dict[str, Any]]:
    """The ways of reading CLIP's last block(s)."""
    return [
        {
            "method": name,
            "similarity": method.similarity,
            "neighbours": method.neighbours,
            "block": method.block,
            "about": METHODS_ABOUT[name],
        }
        for name, method in METHODS.items()
    ]


@functools.lru_cache(maxsize=1)
def _vocabularies() -> list[dict[str, Any]]:
    found = []
    for name in vocabulary.BENCHMARKS:
        words = vocabulary.load(name)
        found.append(
            {
                "vocabulary": name,
                "title": words.title,
                "has_background": words.has_background,
                "classes": [
                    {"class": title, "names": names}
                    for title, names in zip(words.classes, words.names, strict=True)
                ],
            }
        )
    return found


@router.get("/vocabularies", operation_id="vocabularies")
def vocabularies() -> list[dict[str, Any]]:
    """The benchmarks' words: classes and their names."""
    return _vocabularies()


@functools.lru_cache(maxsize=1)
def _examples() -> list[dict[str, Any]]:
    found = []
    for name, seed in SCENES.items():
        scene = draw(seed, SIZE, scale=1, split="held-out", samples=1)
        classes = ["=".join(filter(None, (c.name, ",".join(c.names[1:])))) for c in scene.present]
        found.append({"example": name, "image": f"/v1/examples/{name}.png", "classes": classes})
    return found


@router.get("/examples", operation_id="examples")
def examples() -> dict[str, Any]:
    """Drawn scenes that the tiny model knows, with the words for what is in them."""
    return {"examples": _examples(), "words": [list(c.all_names) for c in CLASSES]}


@functools.lru_cache(maxsize=len(SCENES))
def _scene(name: str) -> bytes:
    scene = draw(SCENES[name], SIZE, scale=SCALE, split="held-out")
    file = io.BytesIO()
    Image.fromarray(scene.image).save(file, format="PNG")
    return file.getvalue()


@router.get(
    "/examples/{name}.png",
    operation_id="example",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}, **problems(404)},
)
def example(name: str) -> Response:
    """A drawn scene as PNG."""
    if name not in SCENES:
        raise Problem(404, f"no such example: known are {', '.join(SCENES)}")
    return Response(_scene(name), media_type="image/png")
