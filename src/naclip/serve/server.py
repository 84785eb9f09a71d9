"""The process: uvicorn on one socket, and an end that finishes what was accepted."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from dataclasses import dataclass
from types import FrameType

import uvicorn
from fastapi import FastAPI

from naclip.errors import FailureError
from naclip.serve.jobs import Jobs
from naclip.serve.logs import configure, event
from naclip.serve.service import Service

CONNECTIONS = 512  # far above the queue: health checks and refusals need connections too


@dataclass(frozen=True)
class Address:
    host: str
    port: int


class Server(uvicorn.Server):
    """On SIGTERM it goes on listening: new work is told to ask again, accepted work is finished.

    Only when nothing is left, or the grace time is over, uvicorn's own shutdown closes the socket:
    no client that was let in meets a closed connection. A second signal ends it at once.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and sys.stderr.isatty():  # for whoever typed it; programs read the log
            print(f"Open {self.url} in a browser. Ctrl-C ends the service.", file=sys.stderr)

    @property
    def url(self) -> str:
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        return f"http://{host}:{self.config.port}/"

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        app = self.config.app
        assert isinstance(app, FastAPI)
        service: Service = app.state.service
        if service.draining or not self.started:
            super().handle_exit(signal.SIGINT if service.draining else sig, frame)
            return
        service.draining = True
        event("stopping", signal=signal.Signals(sig).name, accepted=service.accepted)
        # Kept: asyncio itself holds tasks only weakly.
        self._draining = asyncio.get_event_loop().create_task(self._drain(service, app.state.jobs))

    async def _drain(self, service: Service, jobs: Jobs) -> None:
        end = time.monotonic() + service.limits.grace_seconds
        while (service.accepted or jobs.unfinished) and time.monotonic() < end:
            await asyncio.sleep(0.02)
        event("stopped", accepted=service.accepted, jobs=jobs.unfinished)
        self.should_exit = True


def serve(app: FastAPI, address: Address) -> None:
    """Until a signal ends it."""
    configure()
    config = uvicorn.Config(
        app,
        host=address.host,
        port=address.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=5,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
        http="h11",
        ws="none",
        lifespan="on",
    )
    server = Server(config)
    event("starting", url=server.url)
    try:
        server.run()
    except SystemExit:  # uvicorn's answer to a port that is taken, after its own log line
        raise FailureError(
            f"port {address.port} of {address.host} cannot be used: choose another with --port"
        ) from None
