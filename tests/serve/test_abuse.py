"""Hostile requests: each gets a clean answer of the 400s, and the service goes on."""

from __future__ import annotations

import io
import json
import socket
import struct
import subprocess
import sys
import time
import zlib
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from PIL import Image

from .conftest import TOKEN
from .servers import Server


def png_of_size(width: int, height: int) -> bytes:
    """A PNG of a few bytes that announces many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(60_000, 60_000), (2_000_000_000, 2), (1001, 1000)])
def test_bombs_are_refused_before_they_are_decoded(
    guest: httpx.Client, guarded: Server, size: tuple[int, int]
) -> None:
    before = guarded.memory()
    files = {"image": png_of_size(*size)}
    answer = guest.post("/v1/segment", files=files, data={"classes": ["a", "b"]})
    assert answer.status_code in (413, 422), answer.text
    assert answer.json()["field"] == "image"
    assert guarded.memory() < before + 50_000_000


def test_large_bodies_are_refused_announced_or_not(guest: httpx.Client) -> None:
    answer = guest.post("/v1/segment", files={"image": b"x" * 400_000}, data={"classes": ["a"]})
    assert answer.status_code == 413

    def chunks() -> object:
        for _ in range(100):
            yield b"x" * 10_000

    headers = {"Content-Type": "application/json"}
    try:
        unannounced = guest.post("/v1/segment", content=chunks(), headers=headers)
    except httpx.TransportError:
        return  # the answer came and the connection went before all was sent
    assert unannounced.status_code == 413


def test_a_slow_body_is_ended_and_its_slot_is_free(guarded: Server, guest: httpx.Client) -> None:
    with socket.create_connection(("127.0.0.1", guarded.port)) as slow:
        slow.sendall(
            f"POST /v1/segment HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{".encode()
        )
        slow.settimeout(20)
        assert b" 408 " in slow.recv(4096)
    assert "naclip_accepted 0.0" in guest.get("/metrics").text


def test_tokens_hosts_and_pages_of_others(guarded: Server, http: httpx.Client) -> None:
    url = f"{guarded.url}/v1/methods"
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer " + TOKEN[:-1]},
        {"Authorization": b"Bearer \xff\xfe"},
    ):
        answer = httpx.get(url, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert httpx.get(url, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert httpx.get(f"{guarded.url}/metrics").status_code == 401
    assert httpx.get(f"{guarded.url}/healthz").status_code == 200
    assert TOKEN not in guarded.log.read_text()
    assert http.get("/v1/methods", headers={"Host": "evil.example"}).status_code == 403
    crossed = http.get("/v1/methods", headers={"Sec-Fetch-Site": "cross-site"})
    assert crossed.status_code == 403
    assert "access-control-allow-origin" not in crossed.headers


def test_every_answer_carries_the_security_headers(http: httpx.Client) -> None:
    for path in ("/", "/main.js", "/v1/methods", "/nowhere", "/v1/segment"):
        headers = http.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/app.py",
        "/v1/examples/..%2f..%2fx.png",
        "/main.js%00.png",
        "/v1/jobs/%00",
        "//etc/passwd",
        "/C:%5Cwindows",
    ],
)
def test_path_tricks_find_nothing(server: Server, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := raw.recv(65536):
            answer += part
    assert answer.split(b" ", 2)[1] in (b"404", b"400", b"405")
    assert b"root:" not in answer


@pytest.mark.parametrize(
    ("content_type", "content", "status"),
    [
        ("application/json", b"{", 400),
        ("application/json", b"[" * 100_000, 400),
        ("application/json", b"[]", 400),
        ("application/json", b'{"sigma": NaN}', 400),
        ("application/json", b'{"sigma": 1e999, "classes": ["a", "b"]}', 422),
        ("application/json", b'{"sigma": ' + b"9" * 6000 + b"}", 400),
        ("application/json", b"\xff\xfe", 400),
        ("application/json", b'{"short_side": 1e30}', 422),
        ("text/plain", b"hello", 415),
        ("", b"hello", 415),
        ("multipart/form-data", b"hello", 400),
        ("multipart/form-data; boundary=x", b"--x\r\nbroken", 422),
        ("multipart/form-data; boundary=x; charset=nonsense", b"--x--\r\n", 422),
    ],
)
def test_bodies_that_are_no_request(
    http: httpx.Client, content_type: str, content: bytes, status: int
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    answer = http.post("/v1/segment", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_damaged_images_of_every_format_are_the_clients_fault(http: httpx.Client) -> None:
    for form in ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "PPM"):
        file = io.BytesIO()
        Image.effect_noise((64, 64), 80).convert("RGB").save(file, format=form)
        whole = file.getvalue()
        for damaged in (whole[:20], whole[: len(whole) // 3], whole[:30] + b"\xff" * 400):
            answer = http.post(
                "/v1/segment", files={"image": damaged}, data={"classes": ["a", "b"]}
            )
            assert answer.status_code in (200, 413, 422), (form, answer.text)


def test_a_tiny_and_a_thin_image(http: httpx.Client) -> None:
    for size in ((1, 1), (1, 400), (4000, 1)):
        file = io.BytesIO()
        Image.new("RGB", size).save(file, format="PNG")
        body = {"image": b64encode(file.getvalue()).decode(), "classes": ["a", "b"]}
        answer = http.post(
            "/v1/segment", content=json.dumps(body), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code in (200, 422), (size, answer.text)


def test_schemathesis_finds_no_answer_of_the_500s(server: Server, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("schemathesis")), "run"]
    command += [f"{server.url}/openapi.json", "--checks", "not_a_server_error"]
    command += ["--phases", "examples,coverage,fuzzing", "--max-examples", "12", "--seed", "7"]
    command += ["--exclude-path", "/metrics", "--no-color", "--request-timeout", "60"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=400, check=False
    )
    failed = [row for row in server.events("request") if row["status"] >= 500]
    assert not failed, failed
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_client_that_leaves_frees_its_slot(server: Server, png: Callable[[int], bytes]) -> None:
    left = server.metric("naclip_clients_left_total")
    body = json.dumps(
        {
            "image": b64encode(png(61)).decode(),
            "vocabulary": "coco_stuff",
            "templates": "imagenet80",
        }
    )
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(
            f"POST /v1/segment HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        while server.metric("naclip_accepted") == 0:
            time.sleep(0.01)
    while server.metric("naclip_accepted"):
        time.sleep(0.05)
    assert server.metric("naclip_clients_left_total") == left + 1


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("value", [b"[]", b"0", b'""', b'{"a":0}'])
def test_a_million_values_are_refused_before_they_are_parsed(
    http: httpx.Client, value: bytes
) -> None:
    """Parsed and validated, 8 MB of numbers kept the service from all others for 24 s."""
    content = b'{"classes":[' + (value + b",") * 1_000_000 + b"0]}"
    answer = http.post("/v1/segment", content=content, headers=JSON)
    assert answer.status_code == 413, answer.text
    assert "20,000 commas" in answer.json()["detail"]


@pytest.mark.parametrize("field", ["classes", "background"])
def test_words_are_bounded_in_all_before_they_are_parsed(http: httpx.Client, field: str) -> None:
    words = {"classes": ["a", "b"], field: ["x" * 9_000 for _ in range(900)]}
    answer = http.post("/v1/segment", content=json.dumps({"image": "", **words}), headers=JSON)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == field
    assert "8,100,000 characters: the limit is 201,000" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/segment", 405),
        ("DELETE", "/v1/models", 405),
        ("POST", "/", 405),
        ("POST", "/v1/nowhere", 404),
        ("POST", "/v1/segment/", 404),
        ("GET", "/v1/jobs/none?results=perhaps", 422),
        ("HEAD", "/healthz", 200),
        ("HEAD", "/", 200),
    ],
)
def test_methods_that_a_resource_does_not_have(
    http: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = http.request(method, path)
    assert answer.status_code == status, answer.text
    if status == 405:
        assert answer.headers["allow"]
    if method == "HEAD":
        assert answer.content == b""
    else:
        assert answer.headers["content-type"] == "application/problem+json"


def test_pages_of_others_are_refused_where_browsers_say_only_their_origin(
    http: httpx.Client, server: Server
) -> None:
    """On plain http to a network, browsers send Origin but no Sec-Fetch-Site."""
    for origin in ("http://evil.example", "null", "https://evil.example:8000"):
        answer = http.get("/v1/methods", headers={"Origin": origin})
        assert answer.status_code == 403, origin
    for origin in (server.url, "http://localhost"):
        assert http.get("/v1/methods", headers={"Origin": origin}).status_code == 200


def test_a_token_is_the_bytes_of_the_header() -> None:
    from starlette.datastructures import Headers

    from naclip.serve.gate import Gate
    from naclip.serve.problems import Problem

    sent = Headers(raw=[(b"authorization", "Bearer schlüssel".encode())])
    Gate("schlüssel").check("/v1/methods", sent)
    with pytest.raises(Problem, match="not the right one"):
        Gate("schlussel").check("/v1/methods", sent)
