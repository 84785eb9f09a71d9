"""A session with a real Label Studio: a project pre-labelled end to end. Not a test of CI.

    python -m venv /tmp/label-studio && /tmp/label-studio/bin/pip install label-studio
    python -m tests.label_studio.real_server /tmp/label-studio [--record]

It starts Label Studio and `naclip serve --label-studio` on loopback. A project with brushes and one
with polygons get drawn scenes by upload, in the task itself and from a folder; predictions are
asked for and compared with the library's masks; one becomes an annotation, and what Label Studio
itself exports of it is compared too. Last, an export of ours is imported.
--record writes the requests that Label Studio sent to tests/data/label_studio.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image

from naclip.export import formats
from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.pipeline import load
from naclip.results import Segmentation
from naclip.synthetic import draw

from ..serve.servers import Server, free_port
from .readers import label_and_mask

KEY = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "a-token-for-label-studio"
RECORDS = Path(__file__).parent.parent / "data" / "label_studio"
SCENES = (13, 27)
LABELS = ("Wiese", "sky", "fish", "house")
WORDS = ["grass=lawn", "sky", "fish", "house=building"]
CONFIG = """<View>
  <Image name="photo" value="$photo"/>
  <{kind} name="parts" toName="photo" naclip-threshold="0.2">
    <Label value="Wiese" naclip="grass, lawn"/>
    <Label value="sky"/>
    <Label value="fish"/>
    <Label value="house" naclip="house, building"/>
  </{kind}>
</View>"""
ENVIRONMENT = {
    "DJANGO_DB": "sqlite",
    "COLLECT_ANALYTICS": "0",
    "LATEST_VERSION_CHECK": "0",
    "FRONTEND_SENTRY_DSN": "",
    "SENTRY_DSN": "",
    # The backend, and the webhook that is made with it, are on this machine.
    "ML_BLOCK_LOCAL_IP": "0",
    "USE_DEFAULT_BANNED_SUBNETS": "0",
    "LOCAL_FILES_SERVING_ENABLED": "true",
    "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
    "LABEL_STUDIO_USERNAME": "me@example.org",
    "LABEL_STUDIO_PASSWORD": "a-password-1",
    "LABEL_STUDIO_USER_TOKEN": KEY,
}


@contextlib.contextmanager
def label_studio(venv: Path, folder: Path) -> Iterator[httpx.Client]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [venv / "bin" / "label-studio", "start", "--no-browser", "--port", str(port)]
    with (folder / "label-studio.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--internal-host", "127.0.0.1"],
            stdout=log,
            stderr=log,
            env={
                **os.environ,
                **ENVIRONMENT,
                "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
                "LOCAL_FILES_DOCUMENT_ROOT": str(folder),
            },
        )
    headers = {"Authorization": f"Token {KEY}"}
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
            for _ in range(1800):
                with contextlib.suppress(httpx.TransportError):
                    if client.get("/health").status_code == 200:
                        break
                time.sleep(0.5)
            yield client
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def recorder(target: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A proxy before the backend, and what went through it."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass("GET")

        def do_POST(self) -> None:
            self._pass("POST")

        def _pass(self, method: str) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            names = ("authorization", "content-type", "user-agent")
            headers = {name: self.headers[name] for name in names if name in self.headers}
            answer = httpx.request(
                method, target + self.path, content=raw, headers=headers, timeout=120
            )
            body = json.loads(raw) if raw else None
            row = {"method": method, "path": self.path, "headers": headers, "body": body}
            seen.append({**row, "status": answer.status_code})
            self.send_response(answer.status_code)
            self.send_header("content-type", answer.headers["content-type"])
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()


@functools.lru_cache
def png(seed: int) -> bytes:
    file = io.BytesIO()
    scene = draw(seed, (96, 128), scale=2, split="held-out")  # as the recorded session has it
    Image.fromarray(scene.image).save(file, format="PNG")
    return file.getvalue()


def ok(answer: httpx.Response) -> Any:
    assert answer.is_success, f"{answer.request.url}: {answer.status_code} {answer.text[:500]}"
    return answer.json()


def new_project(studio: httpx.Client, config: str) -> int:
    made = ok(studio.post("/api/projects/", json={"title": "naclip", "label_config": config}))
    return int(made["id"])


def with_tasks(studio: httpx.Client, kind: str, images: Path) -> int:
    """A project with the first scene uploaded, the second from a folder, the first in the task."""
    project = new_project(studio, CONFIG.format(kind=kind))
    files = {"file": (f"scene-{SCENES[0]}.png", png(SCENES[0]), "image/png")}
    ok(studio.post(f"/api/projects/{project}/import", files=files))
    attach(studio, project, images)
    inline = f"data:image/png;base64,{b64encode(png(SCENES[0])).decode()}"
    local = f"/data/local-files/?d={images.name}/scene-{SCENES[1]}.png"
    for value in (local, inline):
        ok(studio.post(f"/api/projects/{project}/import", json=[{"photo": value}]))
    return project


def attach(studio: httpx.Client, project: int, images: Path) -> None:
    """A folder whose files Label Studio may give to the project."""
    storage = {"project": project, "path": str(images), "use_blob_urls": True}
    ok(studio.post("/api/storages/localfiles/", json=storage))


def predicted(studio: httpx.Client, project: int, backend: str) -> list[dict[str, Any]]:
    """The project's tasks, with the predictions that the backend was asked for."""
    basic = {"auth_method": "BASIC_AUTH", "basic_auth_user": "naclip", "basic_auth_pass": TOKEN}
    connected = ok(studio.post("/api/ml/", json={"url": backend, "project": project, **basic}))
    print("backend:", connected["readable_state"], "-", connected["model_version"])
    query = {"id": "retrieve_tasks_predictions", "project": project}
    chosen = {"selectedItems": {"all": True, "excluded": []}}
    print("action:", ok(studio.post("/api/dm/actions/", params=query, json=chosen)))
    print("versions:", ok(studio.get(f"/api/ml/{connected['id']}/versions")))
    return tasks_of(studio, project)


def tasks_of(studio: httpx.Client, project: int) -> list[dict[str, Any]]:
    found = ok(studio.get("/api/tasks/", params={"project": project, "fields": "all"}))["tasks"]
    return [ok(studio.get(f"/api/tasks/{task['id']}/")) for task in found]


@functools.lru_cache
def result_of(seed: int) -> Segmentation:
    segmenter = load("tiny", device="cpu")
    return segmenter(png(seed), WORDS, background=True, threshold=0.2)


def expected(seed: int) -> dict[str, np.ndarray]:
    """The library's masks by label."""
    labels = result_of(seed).labels
    masks = {name: labels == label for label, name in enumerate(LABELS, start=1)}
    return {name: mask for name, mask in masks.items() if mask.any()}


def compare(tasks: list[dict[str, Any]], seeds: tuple[int, ...]) -> None:
    for task, seed in zip(tasks, seeds, strict=True):
        (prediction,) = task["predictions"]
        found: dict[str, np.ndarray] = {}
        for row in prediction["result"]:
            name, mask = label_and_mask(row)
            found[name] = found[name] ^ mask if name in found else mask
        for name, mask in expected(seed).items():
            np.testing.assert_array_equal(found.pop(name), mask)
        assert not found
        print(f"task {task['id']}: equal to the library's, score {prediction['score']}")


def annotate_and_export(studio: httpx.Client, project: int, task: dict[str, Any]) -> None:
    """What Label Studio itself makes of our masks: PNG files."""
    (prediction,) = task["predictions"]
    made = {"result": prediction["result"], "parent_prediction": prediction["id"]}
    ok(studio.post(f"/api/tasks/{task['id']}/annotations/", json=made))
    answer = studio.get(f"/api/projects/{project}/export", params={"exportType": "BRUSH_TO_PNG"})
    masks = expected(SCENES[0])
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        for name in archive.namelist():
            label = re.sub(r".*-parts-(.*)-\d+\.png", r"\1", name)
            pixels = np.asarray(Image.open(io.BytesIO(archive.read(name))))
            np.testing.assert_array_equal(pixels == 255, masks.pop(label))
            print("exported by Label Studio, equal:", name)
    assert not masks


def import_our_export(studio: httpx.Client, images: Path) -> list[dict[str, Any]]:
    form = formats.find("label-studio")
    named = f"{images.name}/scene-{SCENES[0]}.png"
    item = replace(
        Item.of(result_of(SCENES[0]), named), classes=Classes(("background", *LABELS), True)
    )
    assert form.gather is not None
    ((_, pieces),) = form.gather([form.make(item, Options()).part], item.classes, Options())
    labels = "".join(f'<Label value="{name}"/>' for name in item.classes.things)
    project = new_project(
        studio,
        '<View><Image name="image" value="$image"/><BrushLabels name="label" toName="image">'
        f"{labels}</BrushLabels></View>",
    )
    attach(studio, project, images)
    files = {"file": ("tasks.json", b"".join(pieces), "application/json")}
    ok(studio.post(f"/api/projects/{project}/import", files=files))
    (task,) = tasks_of(studio, project)
    assert studio.get(task["data"]["image"]).content == png(SCENES[0])
    return [task]


def personal_token(studio: httpx.Client) -> str:
    """What users of newer versions have in place of a legacy token."""
    return str(ok(studio.post("/api/token/"))["token"])


def session(studio: httpx.Client, backend: str, images: Path) -> None:
    print("Label Studio", ok(studio.get("/api/version/"))["release"])
    seeds = (*SCENES, SCENES[0])
    for kind in ("BrushLabels", "PolygonLabels"):
        project = with_tasks(studio, kind, images)
        tasks = predicted(studio, project, backend)
        compare(tasks, seeds)
        if kind == "BrushLabels":
            annotate_and_export(studio, project, tasks[0])
            time.sleep(2)  # webhooks are sent behind
    compare(import_our_export(studio, images), SCENES[:1])
    print("our export, imported: equal")


def main(venv: Path, record: bool) -> None:
    with tempfile.TemporaryDirectory() as name, label_studio(venv, Path(name)) as studio:
        images = Path(name) / "images"
        images.mkdir()
        for seed in SCENES:
            (images / f"scene-{seed}.png").write_bytes(png(seed))
        arguments = ["--label-studio", "--label-studio-url", str(studio.base_url)]
        environment = {"LABEL_STUDIO_API_KEY": personal_token(studio), "NACLIP_TOKEN": TOKEN}
        served = Server(Path(name), *arguments, env=environment).wait()
        try:
            with recorder(served.url) as (url, seen):
                session(studio, url, images)
        finally:
            served.stop()
            print("problems:", served.events("problem"))
    for row in seen:
        print(row["method"], row["path"], row["status"])
    if record:
        first: dict[str, dict[str, Any]] = {}
        for row in seen:
            first.setdefault(row["path"], row)
        RECORDS.mkdir(exist_ok=True)
        lines = [json.dumps(row) + "\n" for row in first.values()]
        (RECORDS / "session.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--record" in sys.argv)
