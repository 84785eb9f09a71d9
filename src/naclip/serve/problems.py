"""Errors as RFC 9457 problem details: what was wrong, where, and what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from naclip.errors import NaclipError, OutOfMemoryError

MEDIA_TYPE = "application/problem+json"
RENAMED = {413: "Content Too Large", 422: "Unprocessable Content"}  # RFC 9110; in Python since 3.13
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "examples": ["urn:naclip:problem:unprocessable-content"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was found, expected, and what to do"},
        "field": {"type": "string", "description": "The request's field at fault"},
        "request_id": {"type": "string"},
    },
}


class Problem(Exception):  # noqa: N818  (RFC 9457 calls it so)
    """An answer other than success, raised anywhere below a route."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str = "",
        field: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.kind = kind or phrase(status).lower().replace(" ", "-")
        self.field = field
        self.headers = dict(headers or {})

    def body(self, request_id: str = "") -> dict[str, Any]:
        found = {
            "type": f"urn:naclip:problem:{self.kind}",
            "title": phrase(self.status),
            "status": self.status,
            "detail": self.detail,
            "field": self.field,
            "request_id": request_id,
        }
        return {key: value for key, value in found.items() if value != ""}

    def response(self, request_id: str = "") -> JSONResponse:
        return JSONResponse(
            self.body(request_id), self.status, headers=self.headers, media_type=MEDIA_TYPE
        )


def phrase(status: int) -> str:
    return RENAMED.get(status) or HTTPStatus(status).phrase


def unprocessable(detail: str, field: str) -> Problem:
    return Problem(422, detail, field=field)


def of_error(error: NaclipError, field: str = "") -> Problem:
    """The library's own errors: their message is written for the user who caused them."""
    if isinstance(error, OutOfMemoryError):
        return Problem(413, str(error), kind="out-of-memory", field="image")
    return unprocessable(str(error), field)


def install(app: FastAPI) -> None:
    """Every error of a route leaves as a problem."""

    async def problem(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Problem)
        return error.response(request.scope.get("naclip.id", ""))

    async def library(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, NaclipError)
        return of_error(error).response(request.scope.get("naclip.id", ""))

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        detail = _HTTP.get(error.status_code, str(error.detail))
        found = Problem(error.status_code, detail, headers=error.headers)
        return found.response(request.scope.get("naclip.id", ""))

    async def parameter(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        field = str(first["loc"][-1])
        found = unprocessable(f"{field}: {first['msg']}", field)
        return found.response(request.scope.get("naclip.id", ""))

    app.add_exception_handler(Problem, problem)
    app.add_exception_handler(RequestValidationError, parameter)
    app.add_exception_handler(NaclipError, library)
    app.add_exception_handler(HTTPException, http)


_HTTP = {
    404: "no such resource: see /openapi.json",
    405: "this method is not for this resource: see the Allow header and /openapi.json",
}


def encoded(problem: Problem, request_id: str) -> bytes:
    """For middleware, which answers without a framework."""
    return json.dumps(problem.body(request_id)).encode()
