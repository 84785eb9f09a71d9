"""What the OpenAPI document says of requests that are read by hand, as JSON or as a form."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from naclip.serve.fields import SMALL_PNG
from naclip.serve.problems import MEDIA_TYPE, SCHEMA

EXAMPLES: dict[str, dict[str, Any]] = {
    "segment": {"image": SMALL_PNG, "classes": ["cat", "sofa=couch,settee"], "refine": False},
    "embed": {"image": SMALL_PNG, "whole": True},
    "attention": {"image": SMALL_PNG, "row": 1, "column": 1},
    "batch": {"images": [SMALL_PNG, SMALL_PNG], "classes": ["cat", "sofa"], "refine": False},
}
STATUSES = {
    400: "Not JSON, or not a form",
    401: "The token is missing or wrong",
    403: "A host or page that is not let in",
    404: "Not known, or no longer remembered",
    406: "No such media type",
    408: "The body came too slowly",
    413: "Too many bytes or pixels",
    415: "Neither JSON nor a form",
    422: "A field at fault",
    429: "The queue is full: see Retry-After",
    502: "Label Studio did not give an image",
    503: "Stopping, or not done in time: see Retry-After",
}
OTHER_MEDIA: dict[str, dict[str, Any]] = {
    "segment": {"image/png": {}, "application/vnd.naclip.maps": {}},
    "embed": {"application/octet-stream": {}},
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": SCHEMA}}
    return {s: {"description": STATUSES[s], "content": content} for s in statuses}


def route(name: str, fields: type[BaseModel], success: int = 200) -> dict[str, Any]:
    """Keyword arguments of a route whose body is `fields`."""
    schema = fields.model_json_schema()
    schema.pop("$defs", None)
    form = {**schema, "properties": {**schema["properties"]}}
    for file in ("image", "images"):
        if file in form["properties"]:
            binary: dict[str, Any] = {"type": "string", "format": "binary"}
            many = {"type": "array", "items": binary, "minItems": 1}
            form["properties"][file] = many if file == "images" else binary
    return {
        "status_code": success,
        "response_model": None,
        "operation_id": name,
        "responses": {
            success: {
                "description": "Done" if success == 200 else "Accepted",
                "content": {"application/json": {}, **OTHER_MEDIA.get(name, {})},
            },
            **problems(*(status for status in STATUSES if status != 502)),
        },
        "openapi_extra": {
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": schema, "example": EXAMPLES[name]},
                    "multipart/form-data": {"schema": form},
                },
            }
        },
    }
