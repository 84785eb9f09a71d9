"""What the service answers equals what the library returns; what it refuses, it explains."""

from __future__ import annotations

import io
import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from naclip.pipeline import Segmenter
from naclip.settings import METHODS, options

from .servers import Server

WORDS = ["grass=lawn", "sky=clouds", "fish", "house=building"]


def post(http: httpx.Client, image: bytes, path: str = "segment", **fields: Any) -> httpx.Response:
    data = {"classes": WORDS, **fields} if path == "segment" else fields
    return http.post(f"/v1/{path}", files={"image": ("x", image)}, data=data)


def decoded(counts: list[int], size: list[int]) -> np.ndarray:
    """COCO's definition written out: runs of 0 and 1 in turn down the columns."""
    values = [index % 2 for index, count in enumerate(counts) for _ in range(count)]
    return np.array(values, bool).reshape(size[1], size[0]).T


@pytest.mark.parametrize("method", ["naclip", "clip", "gem"])
@pytest.mark.parametrize("refine", [True, False])
def test_json_equals_the_library(
    http: httpx.Client, tiny: Segmenter, png: Callable[[int], bytes], method: str, refine: bool
) -> None:
    image = png(13)
    changes = {"method": method, "refine": refine, "threshold": 0.2, "sigma": 2.0}
    answer = post(http, image, **changes)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    expected = tiny(image, WORDS, **changes)
    assert [row["name"] for row in found["classes"]] == list(expected.classes)
    assert found["report"]["settings"] == json.loads(json.dumps(expected.report.settings))
    for row in found["classes"]:
        mask = decoded(row["rle"]["counts"], row["rle"]["size"])
        np.testing.assert_array_equal(mask, expected.labels == row["label"])
        assert row["area"] == mask.sum()
        if row["area"]:
            x, y, w, h = row["box"]
            assert mask[y : y + h, x : x + w].sum() == row["area"]
            assert mask[y].any()
            assert mask[y + h - 1].any()
            assert mask[:, x].any()
            assert mask[:, x + w - 1].any()


def test_mask_and_overlay_equal_the_library(
    http: httpx.Client, tiny: Segmenter, png: Callable[[int], bytes]
) -> None:
    expected = tiny(png(13), WORDS, background=True)
    mask = post(http, png(13), background="true", format="mask")
    assert mask.headers["content-type"] == "image/png"
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(mask.content))), expected.labels)
    overlay = post(http, png(13), background="true", format="overlay", opacity=0.4)
    pixels = np.asarray(Image.open(io.BytesIO(overlay.content)))
    np.testing.assert_array_equal(pixels, expected.overlay(0.4))
    accepted = http.post(
        "/v1/segment",
        files={"image": png(13)},
        data={"classes": WORDS, "background": "true"},
        headers={"Accept": "image/png"},
    )
    assert accepted.content == mask.content


def test_maps_hold_labels_probabilities_and_heat(
    http: httpx.Client, tiny: Segmenter, png: Callable[[int], bytes]
) -> None:
    content = post(http, png(13), format="maps", refine=False).content
    length = struct.unpack("<I", content[:4])[0]
    header, offset = json.loads(content[4 : 4 + length]), 4 + length
    arrays = {}
    for row in header["arrays"]:
        count = int(np.prod(row["shape"])) * np.dtype(row["dtype"]).itemsize
        values = np.frombuffer(content[offset : offset + count], row["dtype"])
        arrays[row["name"]] = values.reshape(row["shape"])
        offset += count
    assert offset == len(content)
    expected = tiny(png(13), WORDS, refine=False)
    np.testing.assert_array_equal(arrays["labels"], expected.labels)
    np.testing.assert_allclose(arrays["score"] / 255, expected.scores, atol=1 / 255)
    heat = (arrays["heat"] / 255.0) ** (1 / header["heat_gamma"])
    np.testing.assert_allclose(heat, expected.probabilities(), atol=0.01)
    thresholded = tiny(png(13), WORDS, refine=False, threshold=0.5).labels == 0
    certain = np.abs(arrays["probability"] / 65535 - 0.5) > 1e-4
    below = arrays["probability"] / 65535 < 0.5
    np.testing.assert_array_equal(below[certain], thresholded[certain])


def test_json_body_and_a_remembered_image_need_no_second_pass(
    http: httpx.Client, server: Server, tiny: Segmenter, png: Callable[[int], bytes]
) -> None:
    body = {"image": b64encode(png(77)).decode(), "classes": WORDS, "refine": False}
    first = http.post("/v1/segment", json=body)
    passes = server.metric("naclip_batch_images_sum")
    again = {"image_id": first.json()["image_id"], "classes": ["snow", "soil"], "refine": False}
    second = http.post("/v1/segment", json=again)
    assert (first.headers["x-naclip-cache"], second.headers["x-naclip-cache"]) == ("miss", "hit")
    assert server.metric("naclip_batch_images_sum") == passes
    expected = tiny(png(77), ["snow", "soil"], refine=False)
    assert second.json()["classes"][0]["area"] == (expected.labels == 0).sum()
    third = http.post("/v1/segment", json={**again, "method": "clip"})
    assert third.headers["x-naclip-cache"] == "miss"  # another method is another reading
    unknown = http.post("/v1/segment", json={**again, "image_id": "0" * 64})
    assert unknown.status_code == 404
    assert unknown.json()["type"].endswith("image-unknown")


def test_embed_and_attention_equal_the_library(
    http: httpx.Client, tiny: Segmenter, png: Callable[[int], bytes]
) -> None:
    from naclip import images

    windowing = tiny.model.defaults.windowing
    picture = images.load(png(5))
    (encoded,) = tiny.encode(picture, windowing, [tiny.model.defaults.method])
    found = post(http, png(5), "embed").json()
    array = np.frombuffer(b64decode(found["data"]), np.float16).reshape(found["shape"])
    np.testing.assert_allclose(
        array.reshape(*encoded.patches.shape), encoded.patches.numpy(), atol=1e-3
    )
    as_npy = post(http, png(5), "embed", format="npy")
    np.testing.assert_array_equal(np.load(io.BytesIO(as_npy.content)), array)
    looks = post(http, png(5), "attention", row=3, column=7, sigma=2).json()
    methods = [tiny.model.defaults.updated(method=m, sigma=2).method for m in ("clip", "naclip")]
    clip, naclip = tiny.attention(picture, windowing, methods)
    rows = {row["method"]: row["rows"] for row in looks["weights"]}
    np.testing.assert_allclose(rows["clip"], clip[3, 7], atol=1e-6)
    np.testing.assert_allclose(rows["naclip"], naclip[3, 7], atol=1e-6)


def test_a_batch_is_a_job_with_a_result_for_each_image(
    http: httpx.Client, tiny: Segmenter, png: Callable[[int], bytes]
) -> None:
    files = [("images", png(5)), ("images", b"no image"), ("images", png(9))]
    made = http.post("/v1/batch", files=files, data={"classes": WORDS, "refine": False})
    assert made.status_code == 202, made.text
    job: dict[str, Any] = {"state": ""}
    while job["state"] != "done":
        job = http.get(made.headers["location"]).json()
    assert (job["done"], job["failed"]) == (2, 1)
    assert "not an image" in job["results"][1]["problem"]["detail"]
    area = job["results"][2]["classes"][0]["area"]
    assert area == (tiny(png(9), WORDS, refine=False).labels == 0).sum()
    long = http.post(
        "/v1/batch", files=[("images", png(s)) for s in range(40)], data={"classes": WORDS}
    )
    cancelled = http.delete(long.headers["location"]).json()
    assert cancelled["state"] == "cancelled"
    assert http.get("/v1/jobs/unknown").status_code == 404


def test_fields_are_those_of_the_settings(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    content = document["paths"]["/v1/segment"]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"]
    names = {part.name for _, part in options()} | {"method"}
    assert names <= set(schema["properties"])
    assert schema["properties"]["method"]["enum"] == list(METHODS)
    example = http.post("/v1/segment", json=content["application/json"]["example"])
    assert example.status_code == 200, example.text


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"method": "nacilp"}, "method", "did you mean 'naclip'"),
        ({"sigm": 3}, "sigm", "did you mean 'sigma'"),
        ({"sigma": 0}, "sigma", "sigma is 0"),
        ({"sigma": "wide"}, "sigma", "valid number"),
        ({"stride": 300, "window": 64}, "stride", "stride 300 exceeds window 64"),
        ({"stride": 1, "short_side": 3000}, "stride", "the limit is"),
        ({"short_side": 3000, "whole": True}, "short_side", "the limit is"),
        ({"classes": ["cat"]}, "classes", "only one name"),
        ({"classes": ["cat", "cat"]}, "classes", "given twice"),
        ({"classes": []}, "classes", "no classes"),
        ({"classes": [f"word {i}" for i in range(10_000)]}, "classes", "the limit is 1,000"),
        ({"classes": ["x" * 300, "y"]}, "classes", "300 characters"),
        ({"classes": ["\u0130" * 190, "y"]}, "classes", "a bad photo of"),  # tokens, not characters
        ({"vocabulary": "../../etc/passwd", "classes": None}, "vocabulary", "no vocabulary"),
        ({"preset": "/etc/passwd"}, "preset", "no preset"),
        ({"templates": "/etc/passwd"}, "templates", "imagenet80"),
        ({"refine_steps": 10_000}, "refine_steps", "the limit is 50"),
        ({"refine_dilations": [0]}, "refine_dilations", "greater than or equal"),
        ({"image": "/etc/passwd"}, "image", "not base64"),
        ({"image": "http://127.0.0.1/x.png"}, "image", "not base64"),
        ({"image": 3}, "image", "expected base64 text"),
        ({"image": b64encode(b"x").decode()}, "image", "not an image"),
        ({"image": None}, "image", "give one image"),
        ({"classes": "cat"}, "classes", "valid list"),
        ({"classes": ["\ud800", "b"]}, "classes", "unicode string"),
        ({"background": 3}, "background", "background"),
    ],
)
def test_a_wrong_field_is_named_with_what_to_do(
    http: httpx.Client,
    png: Callable[[int], bytes],
    fields: dict[str, Any],
    field: str,
    message: str,
) -> None:
    body = {"image": b64encode(png(5)).decode(), "classes": WORDS, **fields}
    content = json.dumps({k: v for k, v in body.items() if v is not None})
    answer = http.post("/v1/segment", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["field"] == field
    # RFC 9110's phrase, whatever the version of Python.
    assert problem["type"] == "urn:naclip:problem:unprocessable-content"
    assert problem["title"] == "Unprocessable Content"
    assert message in problem["detail"]
    assert problem["request_id"] == answer.headers["x-request-id"]


def test_requests_are_logged_with_their_id_and_counted(http: httpx.Client, server: Server) -> None:
    answer = http.get("/v1/methods", headers={"X-Request-ID": "of-a-test.1"})
    assert answer.headers["x-request-id"] == "of-a-test.1"
    (line,) = [row for row in server.events("request") if row["id"] == "of-a-test.1"]
    assert (line["path"], line["status"]) == ("/v1/methods", 200)
    assert server.metric("naclip_requests_total") > 0
    forged = http.get("/v1/methods", headers={"X-Request-ID": 'x","level":"error'})
    assert forged.headers["x-request-id"].isalnum()
