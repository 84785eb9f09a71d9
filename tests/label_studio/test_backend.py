"""A session with the requests that a real Label Studio sent (real_server.py recorded them).

Its own SDK checks what it would be given, and the masks are compared with the library's.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from label_studio_sdk.label_interface import LabelInterface

from naclip.errors import SettingsError
from naclip.pipeline import load
from naclip.serve.app import create_app
from naclip.serve.label_studio.media import Host
from naclip.serve.label_studio.routes import Backend, configured

from .conftest import RECORDED, Answer, Studio, recorded
from .readers import label_and_mask
from .real_server import CONFIG, LABELS, SCENES, TOKEN, expected, png


def send(client: TestClient, row: dict[str, Any], body: Any = None) -> httpx.Response:
    content = json.dumps(body or row["body"])
    return client.request(row["method"], row["path"], headers=row["headers"], content=content)


def changed(path: str, **parts: Any) -> dict[str, Any]:
    return {**recorded(path)["body"], **parts}


def masks_of(prediction: dict[str, Any]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for row in prediction["result"]:
        name, mask = label_and_mask(row)
        found[name] = found[name] ^ mask if name in found else mask
    return found


def check(prediction: dict[str, Any], xml: str, wanted: dict[str, np.ndarray]) -> None:
    assert LabelInterface(xml).validate_prediction(prediction, return_errors=True) == []
    found = masks_of(prediction)
    assert set(found) == set(wanted)
    for name, mask in wanted.items():
        np.testing.assert_array_equal(found[name], mask)
    assert 0 < prediction["score"] <= 1


def test_the_recorded_session_as_label_studio_reads_it(client: TestClient) -> None:
    assert [row["status"] for row in RECORDED] == [200] * len(RECORDED)
    answers = {row["path"]: send(client, row) for row in RECORDED}
    assert list(answers) == ["/health", "/setup", "/predict", "/versions", "/webhook"]
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(
        answers, 200
    )
    version = answers["/setup"].json()["model_version"]
    assert answers["/versions"].json() == {"versions": [version]}
    predictions = answers["/predict"].json()["results"]
    for prediction, seed in zip(predictions, (*SCENES, SCENES[0]), strict=True):
        assert prediction["model_version"] == version
        check(prediction, CONFIG.format(kind="BrushLabels"), expected(seed))


def test_polygons_fill_the_same_pixels(client: TestClient) -> None:
    xml = CONFIG.format(kind="PolygonLabels")
    answer = send(client, recorded("/predict"), changed("/predict", label_config=xml))
    for prediction, seed in zip(answer.json()["results"], (*SCENES, SCENES[0]), strict=True):
        check(prediction, xml, expected(seed))


def test_parts_are_regions_when_the_control_says_so(client: TestClient) -> None:
    more = 'naclip-instances="true" naclip-min-pixels="30" naclip-threshold'
    xml = CONFIG.format(kind="BrushLabels").replace("naclip-threshold", more)
    answer = send(client, recorded("/predict"), changed("/predict", label_config=xml))
    rows = [row for prediction in answer.json()["results"] for row in prediction["result"]]
    assert len(rows) > len(LABELS)
    for row in rows:
        assert label_and_mask(row)[1].sum() >= 30


def test_no_polygon_is_smaller_than_a_part_may_be(client: TestClient) -> None:
    """Pixels that touch at a corner only are one part and many polygons."""
    more = 'naclip-instances="true" naclip-min-pixels="30" naclip-threshold'
    xml = CONFIG.format(kind="PolygonLabels").replace("naclip-threshold", more)
    answer = send(client, recorded("/predict"), changed("/predict", label_config=xml))
    predictions = answer.json()["results"]
    for prediction, seed in zip(predictions, (*SCENES, SCENES[0]), strict=True):
        wanted = expected(seed)
        for row in prediction["result"]:
            name, mask = label_and_mask(row)
            assert np.count_nonzero(mask) >= 30
            assert not (mask & ~wanted[name]).any()
            wanted[name] = wanted[name] & ~mask
        for left in wanted.values():  # as polygons have it: parts share edges
            rows = cv2.connectedComponentsWithStats(left.astype(np.uint8), connectivity=4)[2][1:]
            assert (rows[:, cv2.CC_STAT_AREA] < 30).all()


def test_a_task_that_fails_gets_no_prediction_and_the_others_theirs(
    client: TestClient, studio: Studio, caplog: pytest.LogCaptureFixture
) -> None:
    (name,) = (path for path in studio.files if "upload" in path)
    studio.files[name] = Answer(200, b"not an image")
    with caplog.at_level(logging.WARNING, "naclip.serve"):
        answer = send(client, recorded("/predict")).json()
    assert answer["results"][0] == []
    assert [len(row["result"]) > 0 for row in answer["results"][1:]] == [True, True]
    (problem,) = answer["problems"]
    assert (problem["task"], problem["status"]) == (1, 422)
    (told,) = [row.fields for row in caplog.records if row.getMessage() == "problem"]
    assert told["task"] == 1
    assert told["detail"] == problem["detail"]


def test_tasks_that_no_time_is_left_for_are_left_to_another_request(
    studio: Studio, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock is the test's own: the first task takes all of the time."""
    tasks = recorded("/predict")["body"]["tasks"]
    for task in tasks:
        if seed := re.search(r"scene-(\d+)\.png$", task["data"]["photo"]):
            studio.files[task["data"]["photo"]] = Answer(200, png(int(seed[1])))
    backend = Backend(Host(studio.url, "legacy"))
    app = create_app(load("tiny", device="cpu"), token=TOKEN, label_studio=backend)
    moments = itertools.chain([0.0, 0.0], itertools.repeat(61.0))
    clock = SimpleNamespace(monotonic=moments.__next__)
    with TestClient(app) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr("naclip.serve.label_studio.routes.time", clock)
        with caplog.at_level(logging.WARNING, "naclip.serve"):
            answer = send(client, recorded("/predict")).json()
    check(answer["results"][0], CONFIG.format(kind="BrushLabels"), expected(SCENES[0]))
    assert answer["results"][1:] == [[], []]
    assert [row["task"] for row in answer["problems"]] == [task["id"] for task in tasks[1:]]
    (told,) = [row.fields for row in caplog.records if row.getMessage() == "problem"]
    assert told["detail"] == "2 of 3 tasks not begun in 60 s"


def test_more_regions_than_anyone_can_correct_are_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("naclip.serve.label_studio.routes.REGIONS", 5)
    more = 'naclip-instances="true" naclip-threshold'
    xml = CONFIG.format(kind="BrushLabels").replace("naclip-threshold", more)
    body = changed("/predict", label_config=xml, tasks=recorded("/predict")["body"]["tasks"][:1])
    answer = send(client, recorded("/predict"), body)
    assert answer.status_code == 422
    assert answer.json()["detail"] == "more than 5 regions: set naclip-min-pixels"
    fewer = xml.replace("naclip-threshold", 'naclip-min-pixels="1000" naclip-threshold')
    answer = send(client, recorded("/predict"), {**body, "label_config": fewer})
    assert answer.status_code == 200


def test_a_projects_name_takes_little_memory(client: TestClient) -> None:
    send(client, recorded("/setup"), changed("/setup", project="x" * 100_000))
    kept = client.app.state.label_studio.versions  # type: ignore[attr-defined]
    assert max(map(len, kept)) <= 200


@pytest.mark.parametrize(
    ("data", "status", "said"),
    [
        ({"photo": "http://169.254.169.254/data/x"}, 422, "only images at http://127.0.0.1"),
        ({"photo": "/data/upload/1/gone.png"}, 502, "status 404"),
        ({"photo": "data:image/png;base64,AAAA"}, 422, "image"),
        ({"photo": 3}, 422, "expected text"),
        ({"photo": "/data/\ud800"}, 422, "it is not an address"),
        ({"photo": "data:image/png;base64,\ud800"}, 422, "not base64"),
        ({"image": "/data/upload/1/x.png"}, 422, "task 9 has no 'photo'"),
    ],
)
def test_one_task_that_fails_is_a_problem(
    client: TestClient, data: dict[str, Any], status: int, said: str
) -> None:
    answer = send(
        client, recorded("/predict"), changed("/predict", tasks=[{"id": 9, "data": data}])
    )
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/setup", {"project": "1.1"}, "schema"),
        ("/setup", {"schema": 3}, "schema"),
        ("/setup", {"schema": "<View/>"}, "label_config"),
        ("/predict", {"label_config": "<View/>"}, "tasks"),
        ("/predict", {"label_config": "<View/>", "tasks": []}, "tasks"),
        ("/predict", {"label_config": "<View/>", "tasks": [{"id": 1}]}, "tasks"),
        ("/predict", {"label_config": "<View/>", "tasks": [{"data": {}}]}, "label_config"),
    ],
)
def test_a_request_that_is_none_of_label_studios_says_what_is_wrong(
    client: TestClient, path: str, body: dict[str, Any], field: str
) -> None:
    answer = send(client, recorded(path), body)
    assert answer.status_code == 422
    assert answer.json()["field"] == field


def test_what_is_too_large_or_not_json_is_refused(client: TestClient) -> None:
    row = recorded("/predict")
    assert send(client, row, {"tasks": "x" * 1_000_001}).status_code == 413
    raw = client.post("/predict", headers=row["headers"], content=b"<xml/>")
    assert raw.status_code == 400


@pytest.mark.parametrize("path", ["/health", "/setup", "/predict", "/versions"])
@pytest.mark.parametrize(
    "authorization",
    ["", "Basic", "Basic ???", "Basic " + b64encode(b"naclip:wrong").decode(), "Bearer wrong"],
)
def test_without_the_token_nobody_comes_in(
    client: TestClient, path: str, authorization: str
) -> None:
    row = recorded(path)
    headers = {"authorization": authorization} if authorization else {}
    answer = client.request(row["method"], path, headers=headers, json=row["body"])
    assert answer.status_code == 401


def test_a_bearer_token_is_as_good(client: TestClient) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert client.get("/health", headers=headers).status_code == 200


def test_without_the_option_there_is_no_backend() -> None:
    with TestClient(create_app(load("tiny", device="cpu"))) as client:
        assert client.get("/health").status_code == 404
        assert "/predict" not in client.get("/openapi.json").json()["paths"]


def test_an_address_without_the_option_is_refused() -> None:
    with pytest.raises(SettingsError, match="add --label-studio"):
        configured(False, "http://studio")
    assert configured(False, "") is None
