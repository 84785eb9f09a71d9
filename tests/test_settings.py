"""Settings: the paper's defaults, and what impossible values say."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from naclip.errors import SettingsError
from naclip.settings import (
    METHODS,
    METHODS_ABOUT,
    PRESETS,
    Decoding,
    Method,
    Refinement,
    Settings,
    Windowing,
    find_method,
    find_preset,
    options,
)
from naclip.vocabulary import BENCHMARKS

IMPOSSIBLE = [
    ({"short_side": 0}, "short_side is 0: use at least 1"),
    ({"long_side": -5}, "long_side is -5: use at least 1"),
    ({"window": 0}, "window is 0: use at least 1"),
    ({"stride": 0}, "stride is 0: use at least 1"),
    (
        {"stride": 300},
        "stride 300 exceeds window 224: pixels would be skipped; use a stride of at most 224",
    ),
    ({"sigma": 0}, "sigma is 0.0: use a positive number of patches"),
    ({"sigma": float("nan")}, "sigma is nan: use a positive number of patches"),
    ({"sigma": float("inf")}, "sigma is inf: use a positive number of patches"),
    ({"depth": 0}, "depth is 0: use at least 1 block"),
    ({"similarity": "kv"}, "similarity is 'kv': use one of qk, kk, qq, vv, qq+kk, gem, none, self"),
    ({"neighbours": "on"}, "neighbours is 'on': use one of off, gaussian, scaled"),
    ({"block": "whole"}, "block is 'whole': use one of reduced, vanilla, dual"),
    ({"scoring": "dot"}, "scoring is 'dot': use one of cosine, surgery"),
    (
        {"similarity": "self"},
        "similarity 'self' has no logits to add neighbours to: use neighbours 'off' with it",
    ),
    ({"refine_steps": 0}, "refine_steps is 0: use at least 1"),
    (
        {"refine_dilations": ()},
        "refine_dilations is (): use one or more distances of at least 1",
    ),
    (
        {"refine_dilations": (8, 0)},
        "refine_dilations is (8, 0): use one or more distances of at least 1",
    ),
    ({"logit_scale": 0}, "logit_scale is 0.0: use a positive number up to a million"),
    ({"logit_scale": 1e30}, "logit_scale is 1e+30: use a positive number up to a million"),
    ({"threshold": 1}, "threshold is 1.0: use a number from 0 to below 1"),
    ({"threshold": -0.1}, "threshold is -0.1: use a number from 0 to below 1"),
    ({"threshold": float("nan")}, "threshold is nan: use a number from 0 to below 1"),
    ({"short_side": "336"}, "short_side is '336': use a whole number"),
    ({"short_side": 336.5}, "short_side is 336.5: use a whole number"),
    ({"stride": True}, "stride is True: use a whole number"),
    ({"whole": "no"}, "whole is 'no': use True or False"),
    ({"refine": 1}, "refine is 1: use True or False"),
    ({"threshold": "0.1"}, "threshold is '0.1': use a number"),
    ({"threshold": None}, "threshold is None: use a number"),
    ({"refine_dilations": 8}, "refine_dilations is 8: use several whole numbers, e.g. (8, 16)"),
    ({"refine_dilations": [8, "x"]}, "refine_dilations is 'x': use a whole number"),
    ({"similarity": 3}, "similarity is 3: use a text"),
    ({"method": 3}, "method is 3: use a name (see naclip methods) or a Method"),
    ({"sigmma": 3}, "no setting 'sigmma'; did you mean 'sigma'? (see naclip.Settings)"),
    ({"method": "nacilp"}, "no method 'nacilp'; did you mean 'naclip'? (see naclip methods)"),
]


@pytest.mark.parametrize(("changes", "says"), IMPOSSIBLE, ids=[str(c) for c, _ in IMPOSSIBLE])
def test_an_impossible_value_says_found_expected_and_fix(
    changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings().updated(**changes)
    assert str(caught.value) == says


def test_a_far_miss_lists_what_there_is() -> None:
    with pytest.raises(SettingsError, match="no method 'quux'; known: naclip, clip, maskclip"):
        find_method("quux")
    with pytest.raises(SettingsError, match="no preset 'voc12'; did you mean 'voc21'"):
        find_preset("voc12")


def test_defaults_are_the_papers() -> None:
    """Section 5.1: short side 336, windows of 224 by 112, sigma 5, PAMR 10 steps at 8 and 16."""
    assert Settings().flat() == {
        "method": "naclip",
        "short_side": 336,
        "long_side": 2048,
        "whole": False,
        "window": 224,
        "stride": 112,
        "similarity": "kk",
        "neighbours": "gaussian",
        "block": "reduced",
        "sigma": 5.0,
        "depth": 6,
        "scoring": "cosine",
        "refine": True,
        "refine_steps": 10,
        "refine_dilations": (8, 16),
        "refiner": "pamr",
        "logit_scale": 40.0,
        "threshold": 0.0,
    }


def test_presets_are_the_programs_benchmarks() -> None:
    assert tuple(PRESETS) == BENCHMARKS
    assert {n for n, p in PRESETS.items() if p.windowing.whole} == {"voc21", "voc20"}
    thresholds = {n for n, p in PRESETS.items() if p.decoding.threshold == 0.1}
    assert thresholds == {"voc21", "context60", "coco_object"}
    sides = {n: p.windowing.short_side for n, p in PRESETS.items()}
    assert sides.pop("cityscapes") == 560
    assert set(sides.values()) == {336}
    assert all(p.method == Method() and p.refinement == Refinement() for p in PRESETS.values())


OTHER: dict[str, Any] = {
    "short_side": 100,
    "long_side": 500,
    "whole": True,
    "window": 200,
    "stride": 50,
    "similarity": "qq",
    "neighbours": "scaled",
    "block": "vanilla",
    "sigma": 2.5,
    "depth": 3,
    "scoring": "surgery",
    "refine": False,
    "refine_steps": 4,
    "refine_dilations": (1, 2),
    "refiner": "crf",
    "logit_scale": 100.0,
    "threshold": 0.25,
}


def test_every_option_is_listed_with_a_help_text() -> None:
    assert {part.name for _, part in options()} == set(OTHER)
    assert all(part.metadata["help"] for _, part in options())


@pytest.mark.parametrize("name", OTHER)
def test_updated_changes_that_option_and_no_other(name: str) -> None:
    before = Settings().flat()
    after = Settings().updated(**{name: OTHER[name]}).flat()
    assert after[name] == OTHER[name]
    assert {key for key in before if before[key] != after[key]} == {name}


def test_updated_takes_all_options_at_once_and_leaves_the_original() -> None:
    settings = Settings()
    assert settings.updated(**OTHER).flat() == {"method": "naclip", **OTHER}
    assert settings == Settings()


@pytest.mark.parametrize("name", METHODS)
def test_a_methods_name_chooses_the_tables_row(name: str) -> None:
    settings = Settings().updated(method=name)
    assert settings.method == METHODS[name]
    assert settings.flat()["method"] == name
    assert METHODS_ABOUT[name]


def test_a_method_keeps_the_chosen_sigma() -> None:
    settings = Settings().updated(sigma=2).updated(method="neighbours")
    assert (settings.method.similarity, settings.method.sigma) == ("none", 2.0)


def test_numbers_of_numpy_become_pythons() -> None:
    settings = Settings().updated(
        sigma=np.float32(2.5),
        window=np.int64(64),
        stride=np.int32(32),
        whole=np.bool_(True),
        threshold=np.float64(0.5),
        refine_dilations=[8, 16],
    )
    assert json.loads(json.dumps(settings.flat()))["window"] == 64
    assert hash(settings) == hash(
        Settings().updated(sigma=2.5, window=64, stride=32, whole=True, threshold=0.5)
    )


def test_settings_cannot_be_changed_in_place() -> None:
    for part in (Settings(), Windowing(), Method(), Refinement(), Decoding()):
        field = dataclasses.fields(part)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, field, 1)


def test_whole_images_need_no_stride() -> None:
    assert Settings().updated(whole=True, stride=500).windowing.stride == 500
