"""POST /v1/batch: many images as a job, done one after another behind the interactive requests.

Jobs live in memory: nothing of a client's is on disk, and a job ends with the service.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from naclip.errors import NaclipError
from naclip.serve import asked, body, openapi
from naclip.serve.fields import BatchFields
from naclip.serve.problems import Problem, of_error
from naclip.serve.routes import plan, service_of
from naclip.serve.service import Service
from naclip.serve.worker import Dropped, Work
from naclip.settings import Settings
from naclip.vocabulary import Vocabulary

router = APIRouter(prefix="/v1")
State = Literal["queued", "running", "done", "cancelled"]


@dataclass(eq=False)
class Job:
    images: list[bytes]
    words: Vocabulary
    settings: Settings
    fields: Any
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    state: State = "queued"
    results: list[bytes] = field(default_factory=list)  # JSON: lists of runs would take much more
    failed: int = 0
    ended: float = 0.0
    current: Work | None = None

    def document(self, results: bool = True) -> Response:
        found = {
            "job": self.id,
            "state": self.state,
            "images": len(self.results) + len(self.images),
            "done": len(self.results) - self.failed,
            "failed": self.failed,
        }
        text = json.dumps(found).encode()
        if results:
            text = text[:-1] + b', "results": [' + b", ".join(self.results) + b"]}"
        return Response(text, media_type="application/json")

    def finish(self, result: bytes, failed: bool) -> None:
        """The first image's: a JSON object, which gets the image's number."""
        self.images.pop(0)
        self.failed += failed
        self.results.append(b'{"image": %d, ' % len(self.results) + result[1:])


class Jobs:
    """The jobs that are known, and the task that does them in order."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.known: dict[str, Job] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def unfinished(self) -> int:
        return sum(job.state in ("queued", "running") for job in self.known.values())

    def add(self, job: Job) -> None:
        self._forget_old()
        if len(self.known) >= self.service.limits.jobs:
            finished = (j for j in self.known.values() if j.state in ("done", "cancelled"))
            oldest = min(finished, key=lambda j: j.ended, default=None)
            if oldest is None:
                detail = f"{len(self.known)} jobs are waiting, which is the limit: ask again"
                raise Problem(429, detail, headers={"Retry-After": "30"})
            del self.known[oldest.id]
        self.known[job.id] = job
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    def find(self, job_id: str) -> Job:
        self._forget_old()
        if job_id not in self.known:
            raise Problem(404, "no such job, or its results were kept long enough")
        return self.known[job_id]

    def cancel(self, job: Job) -> None:
        if job.state in ("queued", "running"):
            job.state, job.ended, job.images = "cancelled", time.monotonic(), []
            if job.current:
                job.current.dropped = True

    def _forget_old(self) -> None:
        oldest = time.monotonic() - self.service.limits.job_seconds
        for job in list(self.known.values()):
            if job.state in ("done", "cancelled") and job.ended < oldest:
                del self.known[job.id]

    async def _run(self) -> None:
        while job := next((j for j in self.known.values() if j.state == "queued"), None):
            job.state = "running"
            while job.state == "running" and job.images:
                result, problem = await self._one(job, job.images[0])
                if job.state == "running":
                    failed = json.dumps({"problem": problem.body()}).encode() if problem else b""
                    job.finish(failed or result, bool(failed))
            if job.state == "running":
                job.state, job.ended = "done", time.monotonic()

    async def _one(self, job: Job, data: bytes) -> tuple[bytes, Problem | None]:
        try:
            picture = await self.service.in_pool(asked.picture, data, self.service.limits)
            image_id = hashlib.sha256(data).hexdigest()
            work = plan(
                self.service, picture, image_id, job.words, job.settings, job.fields, "json", False
            )
            job.current = work
            self.service.worker.submit(work)
            content, _ = await asyncio.wrap_future(work.future)
            return bytes(content), None
        except Problem as problem:
            return b"", problem
        except NaclipError as error:
            return b"", of_error(error)
        except Dropped:
            return b"", Problem(503, "not done in time", kind="time-limit")
        except Exception as error:  # one image must not end the job, nor the task of all jobs
            return b"", Problem(500, f"an error of the service ({type(error).__name__})")


def jobs_of(request: Request) -> Jobs:
    found = request.app.state.jobs
    assert isinstance(found, Jobs)
    return found


@router.post("/batch", **openapi.route("batch", BatchFields, success=202))
async def batch(request: Request) -> Response:
    """Many images with the same words, as a job."""
    service = service_of(request)
    async with service.slot():
        raw = await body.read(request, service.limits)
        fields, files = await body.fields(request, raw, BatchFields)
        if not files or len(files) > service.limits.job_images:
            detail = f"{len(files)} images: send 1 to {service.limits.job_images}"
            raise Problem(422, detail, field="images")
        settings = asked.settings(fields, service.segmenter.model.defaults, service.limits)
        words = asked.words(fields, settings.decoding.threshold, service.limits)
        job = Job(files, words, settings, fields)
        jobs_of(request).add(job)
    location = f"/v1/jobs/{job.id}"
    return JSONResponse(
        {"job": job.id, "state": "queued", "location": location},
        202,
        headers={"Location": location},
    )


_JOB: dict[str, Any] = {"responses": openapi.problems(401, 403, 404, 422)}


@router.get("/jobs/{job_id}", operation_id="job", response_model=None, **_JOB)
async def job_state(request: Request, job_id: str, results: bool = True) -> Response:
    """How far a job is, and the results so far unless results=false."""
    return jobs_of(request).find(job_id).document(results)


@router.delete("/jobs/{job_id}", operation_id="cancel_job", response_model=None, **_JOB)
async def cancel_job(request: Request, job_id: str) -> Response:
    """Stop a job; results so far are kept."""
    jobs = jobs_of(request)
    job = jobs.find(job_id)
    jobs.cancel(job)
    return job.document()
