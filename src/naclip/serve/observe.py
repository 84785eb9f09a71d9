"""Around every request: its id, the gate, the headers of the answer, a log line, the metrics."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from naclip.serve import problems
from naclip.serve.gate import Gate
from naclip.serve.logs import event, log
from naclip.serve.metrics import Metrics
from naclip.serve.problems import Problem

ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
QUIET = ("/healthz", "/readyz", "/metrics")  # asked every few seconds: in the metrics, not the log


class Observe:
    def __init__(self, app: ASGIApp, gate: Gate, metrics: Metrics) -> None:
        self.app = app
        self.gate = gate
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # answered as GET is; the server sends no body
            scope = {**scope, "method": "GET"}
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        scope["naclip.id"] = given if ID.fullmatch(given) else secrets.token_hex(8)
        begin, status = time.perf_counter(), 0

        async def dressed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _dress(message, scope)
            await send(message)

        try:
            try:
                self.gate.check(scope["path"], headers)
                await self.app(scope, receive, dressed)
            except Problem as problem:
                await _answer(problem, scope, dressed)
            except Exception:
                log.exception("error", extra={"fields": {"id": scope["naclip.id"]}})
                if not status:
                    detail = "an error of the service: its log has the details under this id"
                    await _answer(Problem(500, detail), scope, dressed)
        finally:
            self._record(scope, status, time.perf_counter() - begin)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")  # the pattern: paths are unbounded
        self.metrics.requests.labels(route, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if scope["path"] in QUIET:
            return
        event(
            "request",
            logging.INFO if status < 500 else logging.WARNING,
            id=scope["naclip.id"],
            method=scope["method"],
            path=scope["path"][:200],
            status=status,
            seconds=round(seconds, 4),
            **scope.get("naclip.fields", {}),
        )


def _dress(message: Message, scope: Scope) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in SECURITY.items():
        headers[name] = value
    headers["X-Request-ID"] = scope["naclip.id"]
    if "cache-control" not in headers:
        headers["Cache-Control"] = "no-store"


async def _answer(problem: Problem, scope: Scope, send: Send) -> None:
    body = problems.encoded(problem, scope["naclip.id"])
    headers = {
        "content-type": problems.MEDIA_TYPE,
        "content-length": str(len(body)),
        **{name.lower(): value for name, value in problem.headers.items()},
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
