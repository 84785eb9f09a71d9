"""Images come from the task or from the one known host, and from nowhere else."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64decode
from urllib.parse import parse_qs, urlsplit

import pytest

from naclip.errors import SettingsError
from naclip.serve.label_studio.media import Host, from_environment, of_task
from naclip.serve.limits import Limits
from naclip.serve.problems import Problem

from .conftest import Answer, Studio

LIMITS = Limits()
HOME = Host("http://studio:8080/", "key")


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("/data/upload/1/a.png", "http://studio:8080/data/upload/1/a.png"),
        ("/data/upload/1/a b%20c.png", "http://studio:8080/data/upload/1/a%20b%20c.png"),
        (
            "/data/local-files/?d=x/ä y.png",
            "http://studio:8080/data/local-files/?d=x/%C3%A4%20y.png",
        ),
        ("http://studio:8080/data/upload/1/a.png", "http://studio:8080/data/upload/1/a.png"),
        ("http://STUDIO:8080/data/a.png", "http://studio:8080/data/a.png"),
        ("http://me:pw@studio:8080/data/a.png", "http://studio:8080/data/a.png"),
        (
            "/storage-data/uploaded/?filepath=a.png",
            "http://studio:8080/storage-data/uploaded/?filepath=a.png",
        ),
    ],
)
def test_addresses_at_the_known_host(value: str, address: str) -> None:
    assert HOME.address(value, 7) == address


@pytest.mark.parametrize("uri", ["s3://bucket/a b.png", "gs://b/c.png", "azure-blob://b/c.png"])
def test_files_of_storages_are_asked_of_label_studio(uri: str) -> None:
    parts = urlsplit(HOME.address(uri, 7))
    assert (parts.netloc, parts.path) == ("studio:8080", "/tasks/7/resolve/")
    assert urlsafe_b64decode(parse_qs(parts.query)["fileuri"][0]).decode() == uri


def test_a_label_studio_below_a_path() -> None:
    host = Host("https://example.org/studio/")
    for value in ("/data/upload/1/a.png", "/studio/data/upload/1/a.png"):
        assert host.address(value, 1) == "https://example.org/studio/data/upload/1/a.png"
    assert host.address("https://example.org:443/data/a", 1) == "https://example.org/studio/data/a"


@pytest.mark.parametrize(
    "value",
    [
        "http://169.254.169.254/data/latest",
        "https://studio:8080/data/a.png",
        "http://studio/data/a.png",
        "http://studio:8080@evil/data/a.png",
        "//evil/data/a.png",
        "\\\\evil/data/a.png",
        "file:///etc/passwd",
        "ftp://studio:8080/data/a.png",
        "/etc/passwd",
        "etc/passwd",
        "/api/projects/",
        "/data/../api/projects/",
        "/data/%2e%2e/api/projects/",
        "/data/..%2fapi",
        "/data/..\\api",
        "/data/%252e%252e/api/projects/",
        "/data/%" + "25" * 20 + "2e/",
        "/data/\ud800",
        "s3://bucket/\ud800",
        "http://[::1/data",
        "http://studio:port/data/a",
        "x" * 100_000,
    ],
)
def test_all_other_addresses_are_refused(value: str) -> None:
    with pytest.raises(Problem) as raised:
        HOME.address(value, 7)
    assert raised.value.status == 422
    assert len(raised.value.detail) < 500


@pytest.mark.parametrize("url", ["studio:8080", "ftp://studio", "http://", "http://[x", ""])
def test_a_host_that_is_none_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(SettingsError, match=r"label_studio_url is .*: use http://"):
        Host(url)


@pytest.mark.parametrize("url", ["http://me:secret@studio", "http://studio/?key=secret"])
def test_an_address_with_a_secret_in_it_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SettingsError, match="a key goes into LABEL_STUDIO_API_KEY") as raised:
        Host(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("key", ["secret\nx", "se cret", "s\u00e9cret", "secret\r"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(SettingsError, match="copy it again") as raised:
        Host("http://studio", key)
    assert key not in str(raised.value)
    assert "cret" not in str(raised.value)


def test_the_key_is_taken_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "secret\r\n")  # as files of settings have it
    host = from_environment("http://studio")
    assert host is not None
    assert host.key == "secret"
    assert "LABEL_STUDIO_API_KEY" not in os.environ
    assert from_environment("") is None


def test_images_in_the_task_need_no_host() -> None:
    text = b64encode(b"\x89PNG").decode()
    assert of_task(f"data:image/png;base64,{text}", 1, None, LIMITS) == b"\x89PNG"
    with pytest.raises(Problem, match="is not base64"):
        of_task("data:image/png;base64,???", 1, None, LIMITS)
    with pytest.raises(Problem, match="start with --label-studio-url"):
        of_task("/data/upload/1/a.png", 1, None, LIMITS)
    for value in (None, 3, ["x"], ""):
        with pytest.raises(Problem, match="expected text"):
            of_task(value, 1, None, LIMITS)


def test_a_legacy_key_is_sent_as_it_is(studio: Studio) -> None:
    studio.files["/data/upload/1/a.png"] = Answer(200, b"image")
    host = Host(studio.url, "legacy")
    assert of_task("/data/upload/1/a.png", 1, host, LIMITS) == b"image"
    assert studio.asked == [("/data/upload/1/a.png", "Token legacy")]


def test_a_personal_token_is_exchanged_once_and_again_when_it_is_too_old(studio: Studio) -> None:
    studio.files["/data/upload/1/a.png"] = Answer(200, b"image")
    host = Host(studio.url, "a.b.c")
    for _ in range(3):
        assert of_task("/data/upload/1/a.png", 1, host, LIMITS) == b"image"
    assert studio.refreshed == 1
    studio.takes = set()  # minutes later
    assert of_task("/data/upload/1/a.png", 1, host, LIMITS) == b"image"
    assert studio.refreshed == 2


@pytest.mark.parametrize("answer", [b"[]", b"{}", b"<html>", b'{"access": "x\\ny-secret"}'])
def test_what_a_host_that_is_no_label_studio_says_is_told_of_without_it(
    studio: Studio, answer: bytes
) -> None:
    studio.exchanged = answer
    with pytest.raises(Problem, match="an answer that is none") as raised:
        of_task("/data/upload/1/a.png", 1, Host(studio.url, "a.b.c"), LIMITS)
    assert raised.value.status == 502
    assert "secret" not in raised.value.detail


@pytest.mark.parametrize("key", ["", "wrong", "x.y.z"])
def test_a_key_that_is_not_taken_is_told_of(studio: Studio, key: str) -> None:
    with pytest.raises(Problem, match="status 401: is LABEL_STUDIO_API_KEY the key") as raised:
        of_task("/data/upload/1/a.png", 1, Host(studio.url, key), LIMITS)
    assert raised.value.status == 502
    assert len(studio.asked) <= 1


def test_redirects_are_not_followed(studio: Studio) -> None:
    away = {"location": f"{studio.url}/data/elsewhere.png"}
    studio.files["/data/upload/1/a.png"] = Answer(302, headers=away)
    studio.files["/data/elsewhere.png"] = Answer(200, b"image")
    with pytest.raises(Problem, match=r"a redirect: .* pre-signed"):
        of_task("/data/upload/1/a.png", 1, Host(studio.url, "legacy"), LIMITS)
    assert [path for path, _ in studio.asked] == ["/data/upload/1/a.png"]


def test_large_files_and_silent_hosts_are_told_of(studio: Studio) -> None:
    studio.files["/data/a"] = Answer(200, bytes(2000))
    with pytest.raises(Problem, match="more than 1,000 bytes") as raised:
        of_task("/data/a", 1, Host(studio.url, "legacy"), Limits(max_bytes=1000))
    assert raised.value.status == 413
    with pytest.raises(Problem, match="did not give its image") as raised:
        of_task("/data/a", 1, Host("http://127.0.0.1:1", "legacy"), LIMITS)
    assert raised.value.status == 502


def test_files_that_come_too_slowly_or_not_whole_are_told_of(studio: Studio) -> None:
    studio.files["/data/a"] = Answer(200, bytes(40), pause=0.05)  # 2 s byte by byte
    with pytest.raises(Problem, match=r"did not arrive within 0\.3 s") as raised:
        of_task("/data/a", 1, Host(studio.url, "legacy"), Limits(body_seconds=0.3))
    assert raised.value.status == 502
    studio.files["/data/a"] = Answer(200, b"half", {"content-length": "8"})
    with pytest.raises(Problem, match="IncompleteRead") as raised:
        of_task("/data/a", 1, Host(studio.url, "legacy"), LIMITS)
    assert raised.value.status == 502
