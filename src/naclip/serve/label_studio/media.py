"""A task's image -> its bytes: from the task itself, or from the one Label Studio that we know.

A client's word must not make this service ask hosts of the client's choice. So there is one host,
which the user who started the service named; its media paths, and nothing else there; no redirects.
"""

from __future__ import annotations

import json
import os
import time
from base64 import urlsafe_b64encode
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Any
from urllib.error import HTTPError
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from naclip.errors import SettingsError
from naclip.serve import body
from naclip.serve.limits import Limits
from naclip.serve.problems import Problem, unprocessable

KEY = "LABEL_STUDIO_API_KEY"
MEDIA = ("/data/", "/storage-data/")  # paths of uploads and of files on Label Studio's disk
STORAGES = ("s3", "gs", "azure-blob")  # Label Studio passes their files on
FIELD = "tasks"
QUERY = "%/?:@!$&'()*+,;=~"  # RFC 3986: what stands in a query as it is
CHUNK = 1 << 18  # bytes between two looks at the clock
DECODED = 8  # times that something on the way may undo %25; a path that needs more is hostile


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_open = build_opener(_NoRedirects).open


class Host:
    """The Label Studio at `url`; the key is an access token of its user."""

    def __init__(self, url: str, key: str = "") -> None:
        try:
            self.base = _split(url)
        except ValueError:
            self.base = urlsplit("")
        if self.base.scheme not in ("http", "https") or not self.base.hostname:
            raise SettingsError(
                f"label_studio_url is {url!r}: use http:// or https:// and the host's name"
            )
        if "@" in self.base.netloc or self.base.query or self.base.fragment:
            # Not shown: it may hold a password.
            raise SettingsError(
                "label_studio_url has more than a host, a port and a path: remove the rest; a key "
                f"goes into {KEY}"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            # An error of the HTTP client would show the key, to whoever sent the task.
            raise SettingsError(f"{KEY} has characters that no key has: copy it again")
        self.key = key
        self._access = ""  # of a personal access token, which is good for a few minutes

    @property
    def origin(self) -> str:
        return f"{self.base.scheme}://{self.base.netloc}{self.base.path.rstrip('/')}"

    def address(self, value: str, task: int) -> str:
        """The address of a task's image at this host, or the problem of what is not there."""
        try:
            given = _split(value)
            value.encode()  # half a character is not to be asked for
        except ValueError:
            raise _refused(value, "it is not an address") from None
        if given.scheme in STORAGES:
            uri = urlsafe_b64encode(value.encode()).decode()
            return f"{self.origin}/tasks/{task}/resolve/?fileuri={quote(uri)}"
        home = not given.scheme and not given.netloc
        if not home and _origin(given) != _origin(self.base):
            raise _refused(value, f"only images at {self.origin} are fetched")
        path = given.path.removeprefix(self.base.path.rstrip("/"))
        if not path.startswith(MEDIA) or _leads_out(path):
            raise _refused(value, f"images of Label Studio are below {' or '.join(MEDIA)}")
        query = f"?{quote(given.query, safe=QUERY)}" if given.query else ""
        return f"{self.origin}{quote(path, safe='/%')}{query}"

    def fetch(self, value: str, task: int, limits: Limits) -> bytes:
        address = self.address(value, task)
        try:
            try:
                return self._get(address, limits)
            except HTTPError as error:
                if error.code != 401 or not self._access:
                    raise
            self._access = ""  # it was too old
            return self._get(address, limits)
        except HTTPError as error:
            raise _unanswered(value, _meaning(error)) from None
        except (OSError, HTTPException) as error:
            raise _unanswered(value, f"{type(error).__name__}: {error}") from None
        except (ValueError, KeyError, TypeError) as error:  # its text may have a token in it
            raise _unanswered(value, f"an answer that is none ({type(error).__name__})") from None

    def _get(self, address: str, limits: Limits) -> bytes:
        return self._read(Request(address, headers=self._headers(limits)), limits)

    def _headers(self, limits: Limits) -> dict[str, str]:
        if not self.key:
            return {}
        if self.key.count(".") != 2:  # not the JSON Web Token that newer versions give
            return {"Authorization": f"Token {self.key}"}
        if not self._access:
            request = Request(
                f"{self.origin}/api/token/refresh",
                json.dumps({"refresh": self.key}).encode(),
                {"Content-Type": "application/json"},
            )
            self._access = json.loads(self._read(request, limits))["access"]
        return {"Authorization": f"Bearer {self._access}"}

    def _read(self, request: Request, limits: Limits) -> bytes:
        """The whole answer, bounded in size, and in time even where it comes byte by byte."""
        end = time.monotonic() + limits.body_seconds
        found = bytearray()
        with _open(request, timeout=limits.body_seconds) as answer:
            missing = _announced(answer)
            while missing and (part := answer.read1(CHUNK)):
                found += part
                missing -= len(part)
                if len(found) > limits.max_bytes:
                    detail = f"an image of more than {limits.max_bytes:,} bytes"
                    raise Problem(413, detail, field=FIELD)
                if time.monotonic() > end:
                    raise TimeoutError(f"it did not arrive within {limits.body_seconds:g} s")
        if missing > 0:
            raise IncompleteRead(bytes(found), missing)
        return bytes(found)


def of_task(value: Any, task: int, host: Host | None, limits: Limits) -> bytes:
    """The file that a task's field holds or names."""
    if not isinstance(value, str) or not value:
        raise unprocessable(f"its image is {type(value).__name__}: expected text", FIELD)
    if value.startswith("data:"):
        return body.base64_bytes(value, FIELD)
    if host is None:
        raise _refused(value, f"start with --label-studio-url, and the key in {KEY}")
    return host.fetch(value, task, limits)


def from_environment(url: str) -> Host | None:
    """The key is taken out: it is not for whatever reads the environment later."""
    key = os.environ.pop(KEY, "").strip()
    return Host(url, key) if url else None


def _announced(answer: HTTPResponse) -> int:
    """Bytes to come; below 0: not known, the end is where the connection ends."""
    length = answer.headers.get("content-length")
    return int(length) if length is not None else -1


def _leads_out(path: str) -> bool:
    """Whether it does, however often it is decoded on its way."""
    for _ in range(DECODED):
        if {".", ".."} & set(path.replace("\\", "/").split("/")):
            return True
        if (decoded := unquote(path)) == path:
            return False
        path = decoded
    return True


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    _ = parts.port  # ValueError where it is no number
    return parts


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or usual


def _meaning(error: HTTPError) -> str:
    if error.code in (401, 403, 404):
        return f"status {error.code}: is {KEY} the key of a user who may see the task?"
    if error.code in (301, 302, 303, 307, 308):
        return (
            f"status {error.code}, a redirect: set {KEY}, and switch pre-signed URLs of the "
            "storage off"
        )
    return f"status {error.code}"


def _refused(value: str, why: str) -> Problem:
    return unprocessable(f"its image is at {value[:200]!r}: {why}", FIELD)


def _unanswered(value: str, why: str) -> Problem:
    detail = f"Label Studio did not give its image {value[:200]!r}: {why}"
    return Problem(502, detail[:500], field=FIELD)
