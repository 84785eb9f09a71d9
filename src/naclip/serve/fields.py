"""The fields of a request, by name and type. Those of naclip.settings are derived from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from naclip.results import DEFAULT_OPACITY
from naclip.settings import METHODS, PRESETS, Settings, options
from naclip.vocabulary import BENCHMARKS

SMALL_PNG = (  # a small PNG, so that an example can be sent as it stands
    "iVBORw0KGgoAAAANSUhEUgAAAGAAAABAAQAAAADNT0+jAAAAJklEQVR42mNkYGBg+M/AwMDIwMDAxIAERjmDgcMI"
    "i5v/owEyGDkAQWoDfujccOwAAAAASUVORK5CYII="
)
EmbedFormat = Literal["json", "npy"]
LIST_OF_TEXTS = list[Annotated[str, Field(max_length=10_000)]]


class Fields(BaseModel):
    """Common to all requests with an image."""

    model_config = ConfigDict(extra="forbid", str_max_length=200_000_000, allow_inf_nan=False)


def named(known: Any) -> dict[str, Any]:
    """Names of a table, in the schema; a miss is answered by the library, which suggests one."""
    return {"enum": list(known)}


IMAGE: dict[str, Any] = {
    "image": (
        str | None,
        Field(None, description="The image file, base64", json_schema_extra={"format": "byte"}),
    ),
    "image_id": (
        str | None,
        Field(
            None,
            max_length=64,
            description="Instead of the image: the sha256 of a file sent before. 404 if it is "
            "no longer remembered",
        ),
    ),
}


def settings_fields(*groups: str) -> dict[str, Any]:
    """Every option of these groups of Settings, optional: the model's default otherwise."""
    found: dict[str, Any] = {}
    if "method" in groups:
        about = "How CLIP's last block is read (GET /v1/methods)"
        found["method"] = _optional(str, about, json_schema_extra=named(METHODS))
    for group, part in options():
        if group in groups:
            kind = get_type_hints(type(getattr(Settings(), group)))[part.name]
            if get_origin(kind) is tuple:
                kind = list[Annotated[int, Field(ge=1, le=256)]]
            found[part.name] = _optional(kind, part.metadata["help"])
    return found


def _optional(kind: Any, about: str, **extra: Any) -> tuple[Any, Any]:
    bounds: dict[str, Any] = {"le": 1 << 20} if kind is int else {}
    return (Annotated[kind, Field(**bounds)] | None, Field(None, description=about, **extra))


WORDS: dict[str, Any] = {
    "classes": (
        LIST_OF_TEXTS | None,
        Field(
            None,
            description="Words: cat, or sofa=couch,settee for synonyms",
            examples=[["cat", "sofa=couch,settee"]],
        ),
    ),
    "vocabulary": _optional(
        str, "Instead of classes: a benchmark's words", json_schema_extra=named(BENCHMARKS)
    ),
    "preset": _optional(
        str,
        "A benchmark's settings, and its words unless classes are given",
        json_schema_extra=named(PRESETS),
    ),
    "background": (
        bool | LIST_OF_TEXTS | None,
        Field(None, description="true: the 26 background names of VOC21; or names of your own"),
    ),
    "templates": (
        Literal["imagenet80", "plain"],
        Field("imagenet80", description="Prompts around a name"),
    ),
}
OUTPUT: dict[str, Any] = {
    "format": (
        Literal["json", "mask", "overlay", "maps"] | None,
        Field(
            None,
            description="json; mask: PNG of label indices; overlay: PNG of the image under its "
            "mask; maps: a binary bundle of labels, scores and heat maps, as the studio uses it. "
            "Without it the Accept header decides: image/png is a mask",
        ),
    ),
    "rle": (bool, Field(True, description="Masks of the classes in the JSON answer, COCO's RLE")),
    "opacity": (
        float,
        Field(DEFAULT_OPACITY, ge=0, le=1, description="Of the mask in an overlay"),
    ),
}
EVERY = ("windowing", "method", "refinement", "decoding")

SegmentFields = create_model(
    "Segment", __base__=Fields, **IMAGE, **WORDS, **settings_fields(*EVERY), **OUTPUT
)
EmbedFields = create_model(
    "Embed",
    __base__=Fields,
    **IMAGE,
    **settings_fields("windowing", "method"),
    format=(
        EmbedFormat,
        Field("json", description="npy: (windows, rows, columns, channels) float16"),
    ),
)
AttentionFields = create_model(
    "Attention",
    __base__=Fields,
    **IMAGE,
    row=(int | None, Field(None, ge=0, le=1 << 16, description="Of the patch; else the middle")),
    column=(int | None, Field(None, ge=0, le=1 << 16)),
    methods=(
        list[str],
        Field(
            ["clip", "sclip", "naclip"],
            max_length=len(METHODS),
            json_schema_extra={"items": {"type": "string", **named(METHODS)}},
        ),
    ),
    **{
        name: field
        for name, field in settings_fields("windowing", "method").items()
        if name in ("short_side", "long_side", "sigma")
    },
)
BatchFields = create_model(
    "Batch",
    __base__=Fields,
    images=(
        list[str],
        Field(
            description="Image files, base64",
            min_length=1,
            json_schema_extra={"items": {"type": "string", "format": "byte"}},
        ),
    ),
    **WORDS,
    **settings_fields(*EVERY),
    rle=OUTPUT["rle"],
)
