"""Models from a hub that is a small local server: what is asked of it, and what is said offline."""

from __future__ import annotations

import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import naclip

from .families import OPEN_CLIP_CONFIG

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "someone/small-clip"
CONFIG = {
    "model_type": "clip",
    "text_config": {"num_attention_heads": 1, "hidden_act": "quick_gelu"},
    "vision_config": {"num_attention_heads": 2, "hidden_act": "quick_gelu"},
}
WEIGHTS = random.Random(0).randbytes(15_000_000)  # of no model: only their way is tested here
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
PROGRAM = """
import hashlib, sys, time
time.sleep = lambda seconds: None  # the hub client waits longer and longer between its attempts
from naclip.clip.sources import find_source
from naclip.errors import NaclipError
try:
    source = find_source(sys.argv[1])
    print(hashlib.sha256(source.weights.read_bytes()).hexdigest(), sorted(source.config))
except NaclipError as error:
    print(f"{type(error).__name__}: {error}")
"""


class Hub(ThreadingHTTPServer):
    """Serves files of one repository, notes what is asked for, and can hang up halfway."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []  # "GET config.json", ...
        self.ranges: list[str] = []
        self.hang_ups = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        pass  # a client that is gone


class Answer(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, with_body: bool) -> None:
        name = self.path.partition(f"/{REPOSITORY}/resolve/main/")[2]
        self.server.asked.append(f"{self.command} {name}")
        content = self.server.files.get(name)
        if content is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        begin = 0
        if asked := self.headers.get("Range"):
            self.server.ranges.append(asked)
            begin = int(asked.removeprefix("bytes=").split("-")[0])
        self.send_response(206 if begin else 200)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Accept-Ranges", "bytes")
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        if not with_body:
            return
        if self.server.hang_ups and len(content) > 12_000_000:
            self.server.hang_ups -= 1
            self.wfile.write(content[begin : begin + 12_000_000])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(content[begin:])


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    yield hub
    hub.shutdown()
    hub.server_close()


def run(home: Path, endpoint: str, *, offline: bool = False, model: str = REPOSITORY) -> str:
    """What the program prints in a process of its own: the hub client reads its settings once."""
    source = Path(naclip.__file__).parents[1]
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "HF_HOME": str(home),
        "HF_ENDPOINT": endpoint,
        "HF_HUB_OFFLINE": "1" if offline else "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    command = [sys.executable, "-c", PROGRAM, model]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_model_is_downloaded_once_and_then_read_without_a_request(
    hub: Hub, tmp_path: Path
) -> None:
    hub.files = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": WEIGHTS}
    expected = f"{SHA256} {sorted(CONFIG)}"
    assert run(tmp_path, hub.address) == expected
    assert sum(asked == "GET model.safetensors" for asked in hub.asked) == 1
    hub.asked.clear()
    assert run(tmp_path, hub.address) == expected
    assert run(tmp_path, hub.address, offline=True) == expected
    assert hub.asked == []


def test_an_open_clip_repository_is_downloaded(hub: Hub, tmp_path: Path) -> None:
    hub.files = {
        "open_clip_config.json": json.dumps(OPEN_CLIP_CONFIG).encode(),
        "open_clip_model.safetensors": WEIGHTS,
    }
    assert run(tmp_path, hub.address) == f"{SHA256} {sorted(OPEN_CLIP_CONFIG)}"


def test_an_interrupted_download_resumes(hub: Hub, tmp_path: Path) -> None:
    """The client writes 10 MB at a time: it can ask for the rest only behind that."""
    hub.files = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": WEIGHTS}
    hub.hang_ups = 1
    first = run(tmp_path, hub.address)  # the client may try again by itself, or give up
    assert first.startswith((SHA256, "CheckpointError: "))
    assert run(tmp_path, hub.address).startswith(SHA256)
    assert any(asked.startswith("bytes=") and asked != "bytes=0-" for asked in hub.ranges)


def test_offline_without_a_cache_names_the_file_and_the_option(tmp_path: Path) -> None:
    text = run(tmp_path, "http://127.0.0.1:9", offline=True, model="ViT-B/16")
    assert text.startswith("CheckpointError: openai/clip-vit-base-patch16: config.json is not in")
    assert "model.safetensors (599 MB)" in text
    assert "ViT-B-16.pt" in text
    assert "--model" in text
    assert "\n" not in text


def test_an_unreachable_hub_says_the_same(tmp_path: Path) -> None:
    text = run(tmp_path, "http://127.0.0.1:9")
    assert text.startswith(f"CheckpointError: {REPOSITORY}: ")
    assert "--model" in text
    assert "\n" not in text


def test_a_repository_without_a_clip_says_what_is_expected(hub: Hub, tmp_path: Path) -> None:
    hub.files = {"README.md": b"nothing here"}
    text = run(tmp_path, hub.address)
    assert text.startswith(f"CheckpointError: {REPOSITORY}: holds no CLIP weights: expected open_c")


def test_a_repository_of_another_model_says_which(hub: Hub, tmp_path: Path) -> None:
    hub.files = {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"x"}
    assert "expected model_type clip, found bert" in run(tmp_path, hub.address)
