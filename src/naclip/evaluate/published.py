"""The numbers that the paper prints, and which of our runs compute the same."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from naclip.clip.model import ClipModel
from naclip.clip.sources import MODELS
from naclip.settings import METHODS, Method, Settings, find_preset

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


MAIN_MODEL = "ViT-B/16"  # of all tables but that of backbones


@functools.cache
def tables() -> Mapping[str, Any]:
    """published.toml"""
    return tomllib.loads(files("naclip").joinpath("evaluate/published.toml").read_text("utf-8"))


def row_scores(row: Mapping[str, Any]) -> dict[str, float | None]:
    """Benchmark -> mIoU of a row; None where the paper prints none."""
    pairs = zip(tables()["benchmarks"], row["miou"], strict=True)
    return {name: None if math.isnan(value) else value for name, value in pairs}


def known_model(model: ClipModel) -> str | None:
    """The name under which the paper knows these weights."""
    for known in MODELS.values():
        names = (known.name, known.hub.split("/")[-1])
        if known.openai_file and (model.name in names or model.fingerprint == known.openai_sha256):
            return known.name
    return None


def same_setting(benchmark: str, settings: Settings, model: ClipModel) -> float | None:
    """The paper's mIoU for exactly these settings on the whole benchmark, if it prints one."""
    name = known_model(model)
    refined = settings.refinement.refine
    plain = settings.updated(method=Method(), refine=True)
    rest_is_standard = plain == find_preset(benchmark)
    if name is None or not rest_is_standard:
        return None
    for row in tables()["main"]:
        method = METHODS.get(row.get("method", ""))
        if name == MAIN_MODEL and _same(settings.method, method, refined, row["post"]):
            return row_scores(row)[benchmark]
    for row in tables()["backbones"]:
        if name in row and _same(settings.method, METHODS[row["method"]], refined, row["post"]):
            return dict(zip(("voc21", "context59"), row[name], strict=True)).get(benchmark)
    for row in tables()["attention"] + tables()["architecture"]:
        method = ablated(row)
        if name == MAIN_MODEL and _same(settings.method, method, refined, False):
            return row_scores(row)[benchmark]
    return None


def ablated(row: Mapping[str, Any]) -> Method:
    """The method of a row of the ablation tables: CLIP but for what the row names."""
    keys = ("similarity", "neighbours", "block")
    changes = {key: row[key] for key in keys if key in row}
    return Method(
        **{
            "name": row["system"],
            "similarity": "qk",
            "neighbours": "off",
            "block": "vanilla",
            **changes,
        }
    )


def _same(used: Method, listed: Method | None, refined: bool, post: bool) -> bool:
    """Do they compute the same? Names of methods do not count."""
    if listed is None or refined != post:
        return False
    ours, theirs = (
        (m.similarity, m.neighbours, m.block, m.scoring, m.reads) for m in (used, listed)
    )
    sigma_matters = listed.neighbours != "off"
    return ours == theirs and (not sigma_matters or used.sigma == listed.sigma)
