"""naclip.Client against a real server, and against one that is busy or gone."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import naclip
from naclip.client import ServiceError
from naclip.errors import ImageError
from naclip.pipeline import Segmenter

from .conftest import TOKEN
from .servers import Server

WORDS = ["grass=lawn", "sky=clouds", "fish"]


def test_segment_equals_the_library(
    server: Server, tiny: Segmenter, scene: Callable[[int], np.ndarray]
) -> None:
    client = naclip.Client(server.url)
    expected = tiny(scene(13), WORDS, background=["wall"], method="sclip", refine=False)
    answer = client.segment(scene(13), WORDS, background=["wall"], method="sclip", refine=False)
    np.testing.assert_array_equal(answer.labels, expected.labels)
    assert answer.classes == expected.classes
    assert answer.has_background
    assert answer.coverage == pytest.approx(expected.coverage, abs=1e-6)
    again = client.segment_again(answer.image_id, ["snow", "soil"], refine=False)
    np.testing.assert_array_equal(
        again.labels, tiny(scene(13), ["snow", "soil"], refine=False).labels
    )


def test_embed_batch_and_lists(
    server: Server, scene: Callable[[int], np.ndarray], png: Callable[[int], bytes]
) -> None:
    client = naclip.Client(server.url)
    features = client.embed(png(4), whole=True)
    assert features.shape[:3] == (1, 12, 16)
    np.testing.assert_allclose(np.linalg.norm(features.astype(float), axis=-1), 1, atol=1e-2)
    good, bad = client.batch([scene(4), b"nothing"], WORDS, poll=0.05, refine=False)
    assert not isinstance(good, ServiceError)
    assert good.labels.shape == (96, 128)
    assert isinstance(bad, ServiceError)
    assert bad.field == "image"
    assert client.models()["served"]["model"] == "tiny"
    assert client.methods()[0]["method"] == "naclip"
    assert len(client.vocabularies()) == 8


def test_problems_are_errors_with_the_field(
    server: Server, guarded: Server, png: Callable[[int], bytes]
) -> None:
    with pytest.raises(ServiceError, match="did you mean 'naclip'") as caught:
        naclip.Client(server.url).segment(png(4), WORDS, method="nacilp")
    assert (caught.value.status, caught.value.field) == (422, "method")
    with pytest.raises(ServiceError, match="a token is required"):
        naclip.Client(guarded.url).methods()
    assert naclip.Client(guarded.url, token=TOKEN).methods()
    with pytest.raises(ImageError, match=r"no\.png: cannot be read"):
        naclip.Client(server.url).segment("no.png", WORDS)
    with pytest.raises(ServiceError, match="cannot be reached"):
        naclip.Client("http://127.0.0.1:9", retries=0).methods()


def test_a_busy_service_is_asked_again() -> None:
    asked: list[str] = []

    class Busy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status = 200 if len(asked) > 2 else (429, 503)[len(asked) - 1]
            body = json.dumps([{"method": "naclip"}]).encode()
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Busy) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        client = naclip.Client(f"http://127.0.0.1:{service.server_port}")
        assert client.methods() == [{"method": "naclip"}]
        assert len(asked) == 3
        asked.clear()
        with pytest.raises(ServiceError):
            naclip.Client(client.url, retries=0).methods()
        assert len(asked) == 1
        service.shutdown()


class Answers(http.server.BaseHTTPRequestHandler):
    """What a path is answered with: (status, headers, body); `asked` has every request."""

    of: ClassVar[dict[str, tuple[int, dict[str, str], bytes]]] = {}
    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        status, headers, body = self.of[self.path]
        if not status:
            self.close_connection = True
            return  # no answer at all
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def other() -> Iterator[str]:
    """A server that is not ours."""
    Answers.asked.clear()
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{service.server_port}"
        service.shutdown()


def test_the_token_goes_nowhere_else_and_is_not_shown(other: str) -> None:
    Answers.of = {"/v1/methods": (302, {"Location": f"{other}/elsewhere"}, b"")}
    client = naclip.Client(other, token="secret")
    with pytest.raises(ServiceError, match=r"answered 302, which is at .*/elsewhere"):
        client.methods()
    assert Answers.asked == [("/v1/methods", "Bearer secret")]
    assert "secret" not in repr(client)


def test_what_is_no_naclip_serve_is_one_line(other: str) -> None:
    Answers.of = {"/v1/methods": (200, {}, b"<html>")}
    with pytest.raises(ServiceError, match="answered no JSON: is it `naclip serve`"):
        naclip.Client(other).methods()
    Answers.of = {"/v1/methods": (429, {"Retry-After": "-1"}, b"[]")}
    with pytest.raises(ServiceError, match="answered 429"):
        naclip.Client(other, retries=1).methods()


def test_a_job_is_sent_once_and_asked_for_without_its_results(other: str) -> None:
    Answers.of = {"/v1/batch": (0, {}, b"")}
    with pytest.raises(ServiceError, match="no whole answer"):
        naclip.Client(other).batch([b"x"], WORDS)
    assert len(Answers.asked) == 1
    Answers.asked.clear()
    Answers.of = {
        "/v1/batch": (202, {}, b'{"location": "/v1/jobs/1"}'),
        "/v1/jobs/1?results=false": (200, {}, b'{"state": "done"}'),
        "/v1/jobs/1": (200, {}, b'{"state": "done", "results": []}'),
    }
    assert naclip.Client(other).batch([b"x"], WORDS) == []
    assert [path for path, _ in Answers.asked] == [*Answers.of]


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    from naclip.errors import MissingExtraError
    from naclip.serve import require_extra

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'naclip\[serve\]'"):
        require_extra()
