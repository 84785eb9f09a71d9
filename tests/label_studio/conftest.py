"""The backend in this process, and a stand-in for Label Studio's media on loopback."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from naclip.pipeline import load
from naclip.serve.app import create_app
from naclip.serve.label_studio.media import Host
from naclip.serve.label_studio.routes import Backend
from naclip.serve.limits import Limits

from .real_server import TOKEN, png

SESSION = Path(__file__).parent.parent / "data" / "label_studio" / "session.jsonl"
RECORDED = [json.loads(line) for line in SESSION.read_text().splitlines()]


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0  # seconds after each byte; 0: all at once


class Studio(ThreadingHTTPServer):
    """Gives `files` to who has a key that it takes, as Label Studio does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.files: dict[str, Answer] = {}
        self.takes = {"Token legacy"}
        self.asked: list[tuple[str, str]] = []  # path, Authorization
        self.refreshed = 0
        self.exchanged = b""  # in place of an access token


class _Handler(BaseHTTPRequestHandler):
    server: Studio

    def do_GET(self) -> None:
        given = self.headers.get("authorization", "")
        self.server.asked.append((self.path, given))
        if given not in self.server.takes:
            self._send(Answer(401))
        else:
            self._send(self.server.files.get(self.path, Answer(404)))

    def do_POST(self) -> None:
        """A personal access token is exchanged for one of a few minutes."""
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/api/token/refresh" or sent != {"refresh": "a.b.c"}:
            self._send(Answer(401))
            return
        self.server.refreshed += 1
        self.server.takes = {f"Bearer access-{self.server.refreshed}"}
        access = {"access": f"access-{self.server.refreshed}"}
        self._send(Answer(200, self.server.exchanged or json.dumps(access).encode()))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {"content-length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if not answer.pause:
            self.wfile.write(answer.body)
            return
        with contextlib.suppress(OSError):  # who asked has left
            for byte in answer.body:
                self.wfile.write(bytes([byte]))
                time.sleep(answer.pause)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="session")
def _running() -> Iterator[Studio]:
    with Studio() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def studio(_running: Studio) -> Studio:
    """As new."""
    _running.files, _running.takes = {}, {"Token legacy"}
    _running.asked, _running.refreshed, _running.exchanged = [], 0, b""
    return _running


@pytest.fixture(scope="session")
def _app(_running: Studio) -> Iterator[TestClient]:
    backend = Backend(Host(_running.url, "legacy"))
    limits = Limits(max_bytes=1_000_000)
    app = create_app(load("tiny", device="cpu"), limits, token=TOKEN, label_studio=backend)
    with TestClient(app) as found:
        yield found


@pytest.fixture
def client(_app: TestClient, studio: Studio) -> TestClient:
    """Of a backend whose Label Studio has what the recorded tasks name."""
    for task in recorded("/predict")["body"]["tasks"]:
        if seed := re.search(r"scene-(\d+)\.png$", task["data"]["photo"]):
            studio.files[task["data"]["photo"]] = Answer(200, png(int(seed[1])))
    return _app


def recorded(path: str) -> dict[str, Any]:
    """The first request for it."""
    return next(row for row in RECORDED if row["path"] == path)
