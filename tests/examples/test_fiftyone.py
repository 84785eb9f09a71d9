"""The FiftyOne example. FiftyOne brings a database and older versions of our own dependencies, so
here its classes are stand-ins that keep what they are given. Where it is installed, the same tests
run with the real ones (docs/fiftyone.md); samples and the app's context are stand-ins in both.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from naclip.pipeline import load
from naclip.results import Segmentation
from naclip.synthetic import draw

EXAMPLE = Path(__file__).parents[2] / "examples" / "fiftyone"
WORDS = "grass,lawn;sky;fish;house,building"
PAIRS = [part.split(",") for part in WORDS.split(";")]
NAMES = {names[0]: names for names in PAIRS}


class Kept(SimpleNamespace):
    """Any class of FiftyOne's that only holds its arguments."""


class Inputs(list[str]):
    """types.Object: the names of the form's fields."""

    def str(self, name: str, **_: Any) -> None:
        self.append(name)

    def enum(self, name: str, values: Any, **_: Any) -> None:
        del values
        self.append(name)

    def view_target(self, ctx: Any) -> None:
        del ctx
        self.append("view_target")


def stand_ins() -> dict[str, ModuleType]:
    top, operators = ModuleType("fiftyone"), ModuleType("fiftyone.operators")
    types = SimpleNamespace(Object=Inputs, Property=lambda fields, view: fields, View=Kept)
    vars(top).update(Segmentation=Kept, Detections=Kept, Detection=Kept, operators=operators)
    vars(operators).update(Operator=object, OperatorConfig=Kept, types=types)
    return {"fiftyone": top, "fiftyone.operators": operators}


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        if find_spec("fiftyone") is None:
            for name, module in stand_ins().items():
                patch.setitem(sys.modules, name, module)
        spec = importlib.util.spec_from_file_location("example", EXAMPLE / "__init__.py")
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "example", made)
        spec.loader.exec_module(made)
        yield made


class Sample(dict[str, Any]):
    filepath = ""


class View(list[Sample]):
    def iter_samples(self, *, autosave: bool, progress: bool) -> Iterator[Sample]:
        assert autosave
        assert progress
        return iter(self)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fiftyone") / "scene.png"
    scene = draw(13, (96, 128), scale=1, split="held-out", samples=1)
    Image.fromarray(scene.image).save(path)
    return path


@pytest.fixture(scope="module")
def result(image: Path) -> Segmentation:
    return load("tiny", device="cpu")(image, NAMES, background=True)


def executed(example: ModuleType, image: Path, kind: str) -> tuple[Any, Any]:
    """(the field that was written, the dataset)"""
    sample = Sample()
    sample.filepath = str(image)
    told: list[str] = []
    dataset = SimpleNamespace(mask_targets={}, save=lambda: told.append("save"))
    context = SimpleNamespace(
        params={"words": WORDS, "field": "parts", "kind": kind, "model": "tiny"},
        target_view=lambda: View([sample]),
        dataset=dataset,
        trigger=told.append,
    )
    assert example.Segment().execute(context) == {"samples": 1}
    assert told[-1] == "reload_dataset"
    return sample["parts"], dataset


def test_a_segmentation_is_the_librarys_mask(
    example: ModuleType, image: Path, result: Segmentation
) -> None:
    made, dataset = executed(example, image, "segmentation")
    np.testing.assert_array_equal(made.mask, result.labels)
    assert dataset.mask_targets["parts"] == dict(enumerate(result.classes))


def test_detections_are_parts_within_their_boxes(
    example: ModuleType, image: Path, result: Segmentation
) -> None:
    made, _ = executed(example, image, "detections")
    height, width = result.size
    covered = np.zeros(result.size, np.bool_)
    for part in made.detections:
        left, top, wide, high = np.array(part.bounding_box) * [width, height, width, height]
        box = slice(round(top), round(top + high)), slice(round(left), round(left + wide))
        assert part.mask.shape == covered[box].shape
        assert not covered[box][part.mask].any()
        covered[box] |= part.mask
        assert result.mask(part.label)[box][part.mask].all()
        mean = result.scores[box][part.mask].mean(dtype=np.float64)
        assert part.confidence == pytest.approx(mean, abs=1e-6)
    assert not (covered & (result.labels == 0)).any()
    for name in NAMES:  # what is missing are parts of less than 16 pixels
        missing = (result.mask(name) & ~covered).astype(np.uint8)
        sizes = cv2.connectedComponentsWithStats(missing)[2][1:, cv2.CC_STAT_AREA]
        assert (sizes < 16).all()


def test_the_plugin_registers_what_its_file_names(example: ModuleType) -> None:
    registered: list[Any] = []
    example.register(SimpleNamespace(register=registered.append))
    names = [kind().config.name for kind in registered]
    listed = (EXAMPLE / "fiftyone.yml").read_text().partition("operators:\n")[2].split()
    assert names == [name for name in listed if name != "-"]


def test_the_form_asks_for_what_is_used(example: ModuleType) -> None:
    view = SimpleNamespace(_is_generated=False)  # of the whole dataset
    context = SimpleNamespace(
        view=view,
        dataset=SimpleNamespace(view=lambda: view),
        selected=[],
        selected_labels=[],
        get_group_slice_scopes=lambda require_flat: (None, None),
        get_unavailable_view_targets=lambda require_flat: {},
    )
    form = example.Segment().resolve_input(context)
    fields = list(form) if isinstance(form, list) else list(form.type.properties)
    assert set(fields) == {"words", "field", "kind", "model", "view_target"}
