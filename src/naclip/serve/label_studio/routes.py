"""What Label Studio asks of an ML backend, in its words: https://labelstud.io/guide/ml_create.

Label Studio shows its user the status of a failed request and nothing else, so every problem is in
the log. Of many tasks, those that fail get no prediction and the others theirs. Label Studio sends
all the tasks that its user selected in one request, and gives up after 100 s: what is not begun by
then is left out, and it asks for that alone when its user asks again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import OrderedDict
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from naclip.errors import NaclipError, SettingsError
from naclip.export import label_studio
from naclip.export.item import Item
from naclip.pipeline import Encoded
from naclip.serve import body, openapi
from naclip.serve.label_studio import media, project
from naclip.serve.label_studio.config import FIELD
from naclip.serve.label_studio.media import Host
from naclip.serve.label_studio.project import PREFIX, Project
from naclip.serve.logs import event
from naclip.serve.problems import Problem, of_error, unprocessable
from naclip.serve.routes import Check, service_of, work_of

router = APIRouter()
PROJECTS = 1_000  # whose versions are remembered
NAME = 200  # characters of a project's name that are remembered
REGIONS = 10_000  # of an image: more is noise, which nobody can correct by hand
LEFT = 400  # the client did: not the fault of one task
LATER = ConfigDict(extra="ignore", protected_namespaces=())


class Setup(BaseModel):
    """The fields that we read of what Label Studio sends; it sends more."""

    model_config = LATER
    project: str | int = ""
    label_config: str = Field(alias="schema")


class Task(BaseModel):
    model_config = LATER
    id: int = 0
    data: dict[str, Any]


class Predict(BaseModel):
    model_config = LATER
    tasks: list[Task] = Field(min_length=1)
    label_config: str


class Backend:
    """The state of the routes: where images are, and what was last set up."""

    def __init__(self, host: Host | None = None) -> None:
        self.host = host
        self.versions: OrderedDict[str, str] = OrderedDict()  # by project

    def remember(self, name: str, version: str) -> bool:
        """Whether it is new."""
        name = name[:NAME]
        known = self.versions.pop(name, None)
        self.versions[name] = version
        if len(self.versions) > PROJECTS:
            self.versions.popitem(last=False)
        return known != version


def configured(wanted: bool, url: str) -> Backend | None:
    """What the options of `naclip serve` ask for."""
    if url and not wanted:
        raise SettingsError("a Label Studio's address is given: add --label-studio to work for it")
    return Backend(media.from_environment(url)) if wanted else None


def _documented(name: str, kind: type[BaseModel]) -> dict[str, Any]:
    required = [part.alias or key for key, part in kind.model_fields.items() if part.is_required()]
    schema = {"type": "object", "required": required}
    return {
        "operation_id": f"label_studio_{name}",
        "response_model": None,
        "responses": openapi.problems(400, 401, 403, 408, 413, 422, 429, 502, 503),
        "openapi_extra": {
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}
        },
    }


def backend_of(request: Request) -> Backend:
    found = request.app.state.label_studio
    assert isinstance(found, Backend)
    return found


@router.get("/health", operation_id="label_studio_health")
async def health() -> dict[str, str]:
    """The backend answers."""
    return {"status": "UP", "model_class": "naclip"}


@router.post("/setup", **_documented("setup", Setup))
async def setup(request: Request) -> dict[str, str]:
    """The label config of a project: checked, and its words encoded when there is time."""
    service = service_of(request)
    async with service.slot():
        asked_for: Any = await _read(request, Setup)
        found = _project(request, asked_for.label_config)
    version = found.version(service.segmenter.model.name)
    if backend_of(request).remember(str(asked_for.project), version):
        service.warm(found.words.prompts, found.templates)
    return {"model_version": version}


@router.get("/versions", operation_id="label_studio_versions", responses=openapi.problems(401))
async def versions(request: Request) -> dict[str, list[str]]:
    """Of every project that was set up: Label Studio does not say which one it means."""
    return {"versions": list(dict.fromkeys(backend_of(request).versions.values()))}


@router.post("/webhook", operation_id="label_studio_webhook")
async def webhook() -> dict[str, str]:
    """Label Studio tells of each annotation, for training: there is nothing to train."""
    return {"status": "ok", "result": "naclip needs no training"}


@router.post("/predict", **_documented("predict", Predict))
async def predict(request: Request) -> Response:
    """A prediction for each task: the image's regions that have a label."""
    service = service_of(request)
    async with service.slot():
        asked_for: Any = await _read(request, Predict)
        found = _project(request, asked_for.label_config)
        results, problems = await _predict_all(request, found, asked_for.tasks)
        version = found.version(service.segmenter.model.name)
        answer = {"results": results, "model_version": version, "problems": problems}
        return JSONResponse(answer)


async def _predict_all(
    request: Request, found: Project, tasks: list[Task]
) -> tuple[list[Any], list[dict[str, Any]]]:
    """For each task a prediction, or none, so that Label Studio asks again; and what failed."""
    limit = service_of(request).limits.request_seconds
    end = time.monotonic() + limit
    results: list[Any] = []
    problems: list[dict[str, Any]] = []
    for task in tasks:
        if time.monotonic() > end and len(results) > len(problems):
            break  # what is done is not lost
        try:
            results.append(await _predict(request, found, task, len(tasks) == 1))
        except (Problem, NaclipError) as error:
            problem = error if isinstance(error, Problem) else of_error(error)
            _tell(request, problem, task=task.id)
            if problem.status == LEFT or len(tasks) == 1:
                raise problem from None
            results.append([])
            problems.append({"task": task.id, **problem.body()})
    if len(problems) == len(tasks):
        raise Problem(problems[0]["status"], f"every task failed: {problems[0]['detail']}")
    if left := tasks[len(results) :]:
        late = Problem(503, f"{len(left)} of {len(tasks)} tasks not begun in {limit:g} s")
        _tell(request, late)
        problems += [{"task": task.id, **late.body()} for task in left]
        results += [[] for _ in left]
    return results, problems


async def _predict(request: Request, found: Project, task: Task, urgent: bool) -> dict[str, Any]:
    service = service_of(request)
    if found.key not in task.data:
        raise Problem(422, f"task {task.id} has no {found.key!r}, where its image should be")
    value, host = task.data[found.key], backend_of(request).host
    # Not in the threads that decode images: a slow storage would keep other requests from theirs.
    data = await asyncio.to_thread(media.of_task, value, task.id, host, service.limits)
    picture, image_id = await service.picture([data], None)
    version = found.version(service.segmenter.model.name)

    def answer(encoded: Encoded, check: Check) -> dict[str, Any]:
        result = service.segmenter.name_pixels(
            picture, encoded, found.words, found.settings, found.templates
        )
        check()
        item = Item(result.labels, found.classes, str(task.id), scores=result.scores)
        each = _bounded(check)
        return label_studio.prediction(item, found.options, found.control, version, each)

    image, how = (picture, image_id), (found.words, found.settings, found.templates)
    made: dict[str, Any] = await service.result(
        request, work_of(service, image, *how, answer, urgent)
    )
    return made


def _bounded(check: Check) -> Check:
    """Raises when there is no time left for one more region, or when there are too many."""
    made = itertools.count(1)

    def each() -> None:
        check()
        if next(made) > 2 * REGIONS:  # each is found, and then made
            raise unprocessable(f"more than {REGIONS:,} regions: set {PREFIX}min-pixels", FIELD)

    return each


async def _read(request: Request, kind: type[BaseModel]) -> BaseModel:
    limits = service_of(request).limits
    return body.validated(body.json_object(await body.read(request, limits)), kind)


def _project(request: Request, label_config: str) -> Project:
    service = service_of(request)
    try:
        return project.of(label_config, service.segmenter.model.defaults, service.limits)
    except Problem as problem:
        _tell(request, problem)
        raise


def _tell(request: Request, problem: Problem, **of: Any) -> None:
    """Label Studio's user sees a status only."""
    event(
        "problem",
        logging.WARNING,
        id=request.scope["naclip.id"],
        detail=problem.detail,
        **of,
    )
