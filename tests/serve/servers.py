"""`naclip serve` as a real process on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

START_SECONDS = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """Started at once; ended by `stop`, or killed."""

    def __init__(self, folder: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"serve-{self.port}.log"
        command = [sys.executable, "-m", "naclip", "serve", "--port", str(self.port)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--model", "tiny", *arguments],
                stdout=log,
                stderr=log,
                env={**os.environ, "HF_HUB_OFFLINE": "1", **(env or {})},
            )

    def wait(self) -> Server:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if httpx.get(f"{self.url}/readyz").status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError(f"not ready in {START_SECONDS} s: {self.log.read_text()}")

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line[:1] == "{"]
        return [line for line in lines if line["event"] == name]

    def metric(self, name: str) -> float:
        """The sum over labels of a metric's samples."""
        text = httpx.get(f"{self.url}/metrics").text
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(name)]
        return sum(float(value) for key, value in lines if key.partition("{")[0] == name)

    def memory(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        if self.process.poll() is None:
            self.terminate()
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
