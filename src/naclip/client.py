"""A client of `naclip serve`, with types and retries, on Python's standard library alone.

client = naclip.Client("http://127.0.0.1:8000")
answer = client.segment("street.jpg", ["road", "car"], background=True)
answer.labels, answer.coverage
"""

from __future__ import annotations

import io
import json
import os
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from naclip.errors import FailureError, ImageError

Image: TypeAlias = "str | os.PathLike[str] | bytes | NDArray[np.uint8]"
AGAIN = (429, 502, 503, 504)  # the service is busy, stopping, or behind a proxy that lost it


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for this service only: urllib would hand it on to wherever an answer points."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


class ServiceError(FailureError):
    """What the service answered instead of a result: its RFC 9457 problem."""

    def __init__(
        self, message: str, status: int = 0, field: str = "", request_id: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        self.request_id = request_id


@dataclass(frozen=True, eq=False)
class Answer:
    """A segmentation as the service sent it."""

    labels: NDArray[np.uint16]  # (H, W), index into classes
    classes: tuple[str, ...]
    coverage: dict[str, float]
    mean_scores: dict[str, float | None]
    has_background: bool
    image_id: str  # names the image in later requests
    report: dict[str, Any]

    @staticmethod
    def of(document: dict[str, Any]) -> Answer:
        height, width = document["size"]["height"], document["size"]["width"]
        labels = np.zeros(height * width, np.uint16)
        for row in document["classes"]:
            ends = np.cumsum(row["rle"]["counts"])
            for start, end in zip(ends[::2], ends[1::2], strict=False):  # runs of ones
                labels[start:end] = row["label"]
        return Answer(
            labels=labels.reshape(width, height).T,
            classes=tuple(row["name"] for row in document["classes"]),
            coverage={row["name"]: row["coverage"] for row in document["classes"]},
            mean_scores={row["name"]: row["mean_score"] for row in document["classes"]},
            has_background=document["has_background"],
            image_id=document["image_id"],
            report=document["report"],
        )


@dataclass(frozen=True)
class Client:
    """retries: of requests that the service was too busy for or that did not reach it."""

    url: str = "http://127.0.0.1:8000"
    token: str = ""
    timeout: float = 90.0
    retries: int = 5

    def __repr__(self) -> str:
        return f"Client({self.url!r})"  # without the token: notebooks show what a line returns

    def segment(
        self,
        image: Image,
        classes: Sequence[str] = (),
        *,
        background: bool | Sequence[str] | None = None,
        **options: Any,
    ) -> Answer:
        """options: any setting of naclip.Settings, vocabulary, preset, templates."""
        fields = {**_words(classes, background), **options, "image": _encoded(image)}
        return Answer.of(self._ask("POST", "/v1/segment", fields))

    def segment_again(
        self,
        image_id: str,
        classes: Sequence[str] = (),
        *,
        background: bool | Sequence[str] | None = None,
        **options: Any,
    ) -> Answer:
        """Other words for an image sent before; ServiceError 404 if it is no longer remembered."""
        fields = {**_words(classes, background), **options, "image_id": image_id}
        return Answer.of(self._ask("POST", "/v1/segment", fields))

    def embed(self, image: Image, **options: Any) -> NDArray[np.float16]:
        """(windows, rows, columns, channels), L2-normalised."""
        fields = {**options, "image": _encoded(image)}
        found = self._ask("POST", "/v1/embed", fields)
        array = np.frombuffer(b64decode(found["data"]), np.float16)
        return array.reshape(found["shape"])

    def batch(
        self,
        images: Sequence[Image],
        classes: Sequence[str] = (),
        *,
        background: bool | Sequence[str] | None = None,
        poll: float = 0.5,
        **options: Any,
    ) -> list[Answer | ServiceError]:
        """Many images as one job, waited for; an image that failed is its error."""
        fields = {**_words(classes, background), **options, "images": [*map(_encoded, images)]}
        location = self._ask("POST", "/v1/batch", fields)["location"]
        state = f"{location}?results=false"
        while self._ask("GET", state)["state"] in ("queued", "running"):
            time.sleep(poll)
        job = self._ask("GET", location)
        return [
            _error(row["problem"]) if "problem" in row else Answer.of(row) for row in job["results"]
        ]

    def models(self) -> dict[str, Any]:
        return dict(self._ask("GET", "/v1/models"))

    def methods(self) -> list[dict[str, Any]]:
        return list(self._ask("GET", "/v1/methods"))

    def vocabularies(self) -> list[dict[str, Any]]:
        return list(self._ask("GET", "/v1/vocabularies"))

    def _ask(self, method: str, path: str, fields: dict[str, Any] | None = None) -> Any:
        content = self._send(method, path, fields)
        try:
            return json.loads(content)
        except ValueError:
            detail = f"{self.url}{path}: answered no JSON: is it `naclip serve`?"
            raise ServiceError(detail) from None

    def _send(self, method: str, path: str, fields: dict[str, Any] | None = None) -> bytes:
        body = None if fields is None else json.dumps(fields).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        for attempt in range(self.retries + 1):
            request = urllib.request.Request(
                self.url.rstrip("/") + path, body, headers, method=method
            )
            try:
                with _OPENER.open(request, timeout=self.timeout) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                if error.code not in AGAIN or attempt == self.retries:
                    raise _of_response(error) from None
                pause = _seconds(error.headers.get("Retry-After"), attempt)
            except (OSError, HTTPException) as error:
                reached = not isinstance(error, urllib.error.URLError)
                once = path == "/v1/batch"  # a second one would be a second job
                if attempt == self.retries or (once and reached):
                    raise _of_silence(self.url, error, reached) from None
                pause = _seconds(None, attempt)
            time.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")


def _seconds(retry_after: str | None, attempt: int) -> float:
    """What the service asks for, else twice as long each time."""
    try:
        return max(0.0, min(30.0, float(retry_after or "")))
    except ValueError:
        return float(0.2 * 2**attempt)


def _words(classes: Sequence[str], background: bool | Sequence[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {"classes": list(classes)} if classes else {}
    if background is not None:
        found["background"] = background if isinstance(background, bool) else list(background)
    return found


def _encoded(image: Image) -> str:
    if isinstance(image, np.ndarray):
        from PIL import Image as Pillow

        file = io.BytesIO()
        Pillow.fromarray(image).save(file, format="PNG")
        return b64encode(file.getvalue()).decode()
    if isinstance(image, bytes):
        return b64encode(image).decode()
    try:
        return b64encode(Path(image).read_bytes()).decode()
    except OSError as error:
        raise ImageError(f"{image}: cannot be read ({error.strerror})") from None


def _of_silence(url: str, error: Exception, reached: bool) -> ServiceError:
    if reached:
        return ServiceError(f"{url}: no whole answer ({error}): raise the timeout, or ask for less")
    reason = getattr(error, "reason", error)
    return ServiceError(f"{url}: cannot be reached ({reason}): is `naclip serve` running?")


def _of_response(response: urllib.error.HTTPError) -> ServiceError:
    try:
        return _error(json.loads(response.read()))
    except (ValueError, AttributeError, TypeError):
        other = response.headers.get("Location", "")
        hint = f", which is at {other}: give that address" if other else ""
        return ServiceError(f"{response.url}: answered {response.code}{hint}", response.code)


def _error(problem: dict[str, Any]) -> ServiceError:
    return ServiceError(
        str(problem.get("detail", "no detail")),
        int(problem.get("status", 0)),
        str(problem.get("field", "")),
        str(problem.get("request_id", "")),
    )
