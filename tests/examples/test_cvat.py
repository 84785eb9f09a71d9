"""The CVAT examples: a nuclio function in a stand-in of nuclio, and what CVAT makes of its answer.

CVAT's own SDK is the oracle of masks: it encodes what the library finds, and decodes ours.
"""

from __future__ import annotations

import base64
import copy
import importlib.util
import io
import itertools
import json
import logging
import sys
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import cv2
import cvat_sdk.auto_annotation as cvataa
import numpy as np
import pytest
import yaml
from cvat_sdk import models
from cvat_sdk.auto_annotation import driver
from cvat_sdk.masks import decode_mask
from PIL import Image

from naclip.pipeline import load
from naclip.results import Segmentation
from naclip.synthetic import draw

EXAMPLES = Path(__file__).parents[2] / "examples" / "cvat"
LABELS: list[dict[str, Any]] = [
    {"id": 0, "name": "Wiese", "type": "mask", "naclip": ["grass", "lawn"]},
    {"id": 1, "name": "sky", "type": "mask"},
    {"id": 2, "name": "fish", "type": "mask"},
    {"id": 3, "name": "house", "type": "mask", "naclip": ["house", "building"]},
]
WORDS = {
    "Wiese": ["grass", "lawn"],
    "sky": ["sky"],
    "fish": ["fish"],
    "house": ["house", "building"],
}
LEAST = 16  # pixels of a part, in both examples


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


@dataclass
class Response:
    """The arguments of nuclio_sdk.Response, in its order and with its defaults."""

    headers: dict[str, str] | None = None
    body: str | None = None
    content_type: str | None = None
    status_code: int = 200
    event_id: str | None = None


@dataclass
class Logger:
    lines: list[str] = field(default_factory=list)

    def info(self, text: str) -> None:
        self.lines.append(text)

    warn = info


def new_context() -> Any:
    """nuclio's own where its SDK is installed (docs/cvat.md), else a stand-in."""
    if find_spec("nuclio_sdk") is None:
        return SimpleNamespace(user_data=SimpleNamespace(), logger=Logger(), Response=Response)
    return import_module("nuclio_sdk").Context(logger=Logger())


def new_event(body: Any) -> Any:
    """A request with a body of JSON, read as nuclio reads it where its SDK is installed."""
    if find_spec("nuclio_sdk") is None:
        return SimpleNamespace(body=body)
    rest = "fields headers id method path size timestamp url shard_id num_shards type type_version"
    sent: dict[bytes, Any] = dict.fromkeys([*rest.encode().split(), b"version"], 0)
    sent[b"trigger"] = {b"kind": b"http", b"name": b"http"}
    sent |= {b"body": json.dumps(body).encode(), b"content_type": b"application/json"}
    return import_module("nuclio_sdk").Event.deserialize(sent)


@pytest.fixture(scope="module")
def picture() -> Image.Image:
    return Image.fromarray(draw(13, (96, 128), scale=1, split="held-out", samples=1).image)


@pytest.fixture(scope="module")
def result(picture: Image.Image) -> Segmentation:
    return load("tiny", device="cpu")(np.asarray(picture), WORDS, background=True)


@pytest.fixture(scope="module")
def nuclio(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(handler, context) after init_context, with function.yaml where the example looks for it."""
    function = yaml.safe_load((EXAMPLES / "function.yaml").read_text())
    function["metadata"]["annotations"]["spec"] = json.dumps(LABELS)
    path = tmp_path_factory.mktemp("nuclio") / "function.yaml"
    path.write_text(yaml.safe_dump(function))
    context = new_context()
    made = module("main")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NACLIP_FUNCTION", str(path))
        patch.setenv("NACLIP_MODEL", "tiny")
        made.init_context(context)
    return lambda body: made.handler(context, new_event(body))


def encoded(picture: Image.Image) -> str:
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


def as_cvat_reads(row: dict[str, Any], size: tuple[int, int]) -> np.ndarray:
    """CVAT's server makes run lengths of the pixels, the first of zeros; its SDK decodes them."""
    *pixels, left, top, right, bottom = row["mask"]
    runs = [(value, len(list(group))) for value, group in itertools.groupby(pixels)]
    lengths = [length for _, length in runs]
    rle = lengths if runs[0][0] == 0 else [0, *lengths]
    points = [*rle, left, top, right, bottom]
    return decode_mask(points, image_width=size[1], image_height=size[0])


def assert_all_but_crumbs(found: dict[str, np.ndarray], result: Segmentation) -> None:
    for name in WORDS:
        missing = result.mask(name) & ~found.get(name, np.zeros(result.size, np.bool_))
        assert not (found.get(name, missing) & ~result.mask(name)).any()
        sizes = cv2.connectedComponentsWithStats(missing.astype(np.uint8))[2][1:, cv2.CC_STAT_AREA]
        assert (sizes < LEAST).all()


def test_the_nuclio_function_answers_masks_that_cvats_sdk_decodes(
    nuclio: Any, picture: Image.Image, result: Segmentation
) -> None:
    answer = nuclio({"image": encoded(picture)})
    assert (answer.status_code, answer.content_type) == (200, "application/json")
    found: dict[str, np.ndarray] = {}
    for row in json.loads(answer.body):
        assert row["type"] == "mask"
        mask = as_cvat_reads(row, result.size)
        assert mask.sum() >= LEAST
        mean = result.scores[mask].mean(dtype=np.float64)
        assert float(row["confidence"]) == pytest.approx(mean, abs=1e-6)
        assert len(row["points"]) >= 6
        assert len(row["points"]) % 2 == 0
        found[row["label"]] = found.get(row["label"], False) | mask
    assert_all_but_crumbs(found, result)


def test_the_nuclio_function_leaves_out_what_is_below_cvats_threshold(
    nuclio: Any, picture: Image.Image
) -> None:
    every = json.loads(nuclio({"image": encoded(picture)}).body)
    scores = sorted(float(row["confidence"]) for row in every)
    some = json.loads(nuclio({"image": encoded(picture), "threshold": scores[1]}).body)
    assert sorted(float(row["confidence"]) for row in some) == scores[1:]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"image": "AAAA"},
        {"image": "%"},
        {"image": 3},
        {"image": "AAAA", "threshold": "much"},
        ["AAAA"],
    ],
)
def test_the_nuclio_function_says_what_is_wrong(nuclio: Any, body: Any) -> None:
    answer = nuclio(body)
    assert (answer.status_code, answer.content_type) == (422, "text/plain")
    assert answer.body


def test_the_function_file_has_what_cvat_reads() -> None:
    function = yaml.safe_load((EXAMPLES / "function.yaml").read_text())
    about = function["metadata"]["annotations"]
    assert about["type"] == "detector"
    labels = json.loads(about["spec"])
    assert len({label["name"] for label in labels}) == len(labels)
    assert {label["type"] for label in labels} == {"mask"}
    assert function["spec"]["handler"] == "main:handler"


def assert_cvats_driver_takes(function: Any, shapes: list[Any], polygons: bool) -> None:
    """What cvat-cli does with the shapes, for a task whose labels have the type of them."""
    kind = "polygon" if polygons else "mask"
    labels = [
        models.Label(name=label.name, id=100 + label.id, type=kind, sublabels=[], attributes=[])
        for label in function.spec.labels
    ]
    mapper = driver._AnnotationMapper(
        logging.getLogger(),
        function.spec.labels,
        labels,
        allow_unmatched_labels=False,
        conv_mask_to_poly=polygons,
    )
    before = [shape.label_id for shape in shapes]
    mine = [copy.deepcopy(shape) for shape in shapes]
    mapper.validate_and_remap(mine, 7)
    assert [shape.label_id - 100 for shape in mine] == before
    assert {shape.frame for shape in mine} == {7}


@pytest.mark.parametrize("polygons", [False, True])
def test_the_auto_annotation_function_is_one_of_cvats_sdk(
    picture: Image.Image, result: Segmentation, polygons: bool
) -> None:
    words = ";".join(",".join(names) for names in WORDS.values())
    function = module("auto_annotate").create(words, "tiny")
    assert [label.name for label in function.spec.labels] == ["grass", "sky", "fish", "house"]
    context = SimpleNamespace(conf_threshold=None, conv_mask_to_poly=polygons, frame_name="x.png")
    shapes = function.detect(context, picture)
    assert isinstance(function.spec, cvataa.DetectionFunctionSpec)
    assert {str(shape.type) for shape in shapes} == {"polygon" if polygons else "mask"}
    assert_cvats_driver_takes(function, shapes, polygons)
    none = SimpleNamespace(conf_threshold=1.0, conv_mask_to_poly=polygons, frame_name="x.png")
    assert function.detect(none, picture) == []
    if not polygons:
        found: dict[str, np.ndarray] = {}
        for shape in shapes:
            size = {"image_width": picture.width, "image_height": picture.height}
            name = list(WORDS)[shape.label_id]
            mask = decode_mask(shape.points, **size)
            found[name] = found.get(name, False) | mask
        assert_all_but_crumbs(found, result)
