"""The parts put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from naclip import __version__
from naclip.pipeline import Segmenter
from naclip.serve import jobs, lists, openapi, problems, routes
from naclip.serve.gate import Gate
from naclip.serve.label_studio import routes as label_studio_routes
from naclip.serve.label_studio.routes import Backend
from naclip.serve.limits import Limits
from naclip.serve.observe import Observe
from naclip.serve.service import Service

STATIC = Path(__file__).parent / "static"
health = APIRouter()


def create_app(
    segmenter: Segmenter,
    limits: Limits | None = None,
    *,
    token: str = "",
    hosts: tuple[str, ...] = (),
    warm: bool = False,
    label_studio: Backend | None = None,
) -> FastAPI:
    """The service around a loaded model.

    hosts         names that requests may use for this host; none: any
    warm          encode the words of the benchmarks while there is nothing else to do
    label_studio  be a Label Studio ML backend too
    """
    service = Service(segmenter, limits or Limits())
    if warm:
        service.warm_words()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="naclip",
        version=__version__,
        summary="Label every pixel of an image with words",
        docs_url=None,  # FastAPI's page of the API loads scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,  # to a name of the client's choosing, its Host header
        lifespan=lifespan,
    )
    app.state.service = service
    app.state.jobs = jobs.Jobs(service)
    for router in (routes.router, jobs.router, lists.router, health):
        app.include_router(router)
    if label_studio:
        app.state.label_studio = label_studio
        app.include_router(label_studio_routes.router)
    # Not a mount at /: it would answer 404 for a resource that is there, but for other methods.
    app.router.default = _Page(directory=STATIC, html=True)
    problems.install(app)
    app.add_middleware(Observe, gate=Gate(token, hosts), metrics=service.metrics)
    return app


class _Page(StaticFiles):
    """The studio; asked for again at each visit, so that a new version is seen at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD") and not self.lookup_path(path)[1]:
            raise HTTPException(404)
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


@health.get("/healthz", operation_id="alive")
async def healthz() -> dict[str, str]:
    """The process is alive."""
    return {"status": "ok"}


@health.get("/readyz", operation_id="ready", responses=openapi.problems(503))
async def readyz(request: Request) -> dict[str, Any]:
    """Requests are accepted: the model is loaded and the service is not stopping."""
    service: Service = request.app.state.service
    service.check_open()
    return {"status": "ready", "model": service.segmenter.model.name}


@health.get("/metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """For Prometheus."""
    service: Service = request.app.state.service
    return Response(
        generate_latest(service.metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
    )
