"""A request's bytes -> its fields and files, bounded in size and time, kept in memory only."""

from __future__ import annotations

import asyncio
import binascii
import json
from base64 import b64decode
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from naclip.errors import no_such
from naclip.serve.limits import Limits
from naclip.serve.problems import Problem, unprocessable

FILES = ("image", "images")
PARTS = 20_000  # values of a JSON body, fields of a form: each costs far more than its bytes


async def read(request: Request, limits: Limits) -> bytes:
    """The whole body, or 413 before it is held, or 408 when it comes too slowly."""
    announced = request.headers.get("content-length", "0")
    too_large = Problem(
        413, f"the body is larger than {limits.max_bytes:,} bytes: send a smaller image"
    )
    if announced.isdigit() and int(announced) > limits.max_bytes:
        raise too_large
    found = bytearray()

    async def collect() -> None:
        async for chunk in request.stream():
            found.extend(chunk)
            if len(found) > limits.max_bytes:
                raise too_large

    try:
        await asyncio.wait_for(collect(), limits.body_seconds)
    except (TimeoutError, asyncio.TimeoutError):  # two classes until Python 3.11
        detail = f"the body did not arrive within {limits.body_seconds:g} s"
        raise Problem(408, detail, headers={"Connection": "close"}) from None
    except ClientDisconnect:
        raise Problem(400, "the client left before its body was complete") from None
    return bytes(found)


async def fields(
    request: Request, body: bytes, kind: type[BaseModel]
) -> tuple[BaseModel, list[bytes]]:
    """The validated fields and the image files, from JSON or from a form."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "application/json":
        # Before it is parsed: 32 MB of `[],[],` would become gigabytes. Base64 has no commas.
        if body.count(b",") > PARTS:
            raise Problem(413, f"the JSON has more than {PARTS:,} commas: send fewer values")
        values = json_object(body)
        files = [base64_bytes(text, name) for name in FILES for text in _listed(values.get(name))]
    elif content_type == "multipart/form-data":
        values, files = await _form(request, body, kind)
    else:
        raise Problem(
            415,
            f"content type {content_type or 'missing'}: send multipart/form-data with a file "
            "field image, or application/json with image as base64",
        )
    return validated(values, kind), files


def json_object(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"the body is not JSON ({error})"[:300]) from None
    if not isinstance(values, dict):
        raise Problem(400, f"expected a JSON object, found {type(values).__name__}")
    return values


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _listed(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def base64_bytes(text: Any, field: str) -> bytes:
    if not isinstance(text, str):
        raise unprocessable(f"{field} is {type(text).__name__}: expected base64 text", field)
    try:
        return b64decode(
            text.partition(",")[2] if text.startswith("data:") else text, validate=True
        )
    except (binascii.Error, ValueError):
        raise unprocessable(f"{field} is not base64", field) from None


class _InMemory(MultiPartParser):
    """The body is bounded and in memory already: nothing of a client goes to a temporary file."""

    spool_max_size = 1 << 62


async def _form(
    request: Request, body: bytes, kind: type[BaseModel]
) -> tuple[dict[str, Any], list[bytes]]:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    try:
        form = await _InMemory(request.headers, stream(), max_fields=PARTS).parse()
    except (MultiPartException, KeyError, LookupError, UnicodeError, ValueError) as error:
        raise Problem(400, f"the form cannot be read ({error})"[:300]) from None
    texts: dict[str, list[str]] = {}
    files: list[bytes] = []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            if name not in FILES:
                raise unprocessable(f"a file in field {name!r}: the field is image", name)
            files.append(await value.read())
        else:
            texts.setdefault(name, []).append(value)
    values = {name: scalar_or_list(name, texts[name], kind) for name in texts}
    if "images" in kind.model_fields:
        values["images"] = [""] * len(files)  # counted and typed as in JSON
    return values, files


def scalar_or_list(name: str, texts: list[str], kind: type[BaseModel]) -> Any:
    """A list where the field is one; `background=true` may stand alone."""
    field = kind.model_fields.get(name)
    wanted = str(field.annotation) if field else ""
    if "list[" in wanted and not ("bool" in wanted and texts[0].lower() in ("true", "false")):
        return texts
    if len(texts) > 1 and field:
        raise unprocessable(f"{name} is given {len(texts)} times: give it once", name)
    return texts[0]


def validated(values: dict[str, Any], kind: type[BaseModel]) -> BaseModel:
    for name in values if kind.model_config.get("extra") == "forbid" else ():
        if name not in kind.model_fields:
            shown = name[:100].encode("utf-8", "replace").decode()
            raise unprocessable(no_such("field", shown, kind.model_fields, "/openapi.json"), shown)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        raise unprocessable(f"{field}: {first['msg']}", field) from None
    except (RecursionError, UnicodeError):
        raise Problem(400, "the fields are nested too deeply or are not text") from None
