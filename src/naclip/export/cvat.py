"""CVAT for images 1.1: XML of masks (run by run, row by row) or polygons, in annotations.xml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from naclip.export.item import Classes, Item
from naclip.export.options import Options
from naclip.export.outlines import outlines
from naclip.export.regions import Mask, Region, regions
from naclip.export.writer import Format, Made, Parts, Whole

SCORE = "score"  # an attribute of every label


def make(item: Item, options: Options) -> Made:
    height, width = item.size
    shapes = [
        {"label": item.classes.names[region.label], "score": region.score, **shape}
        for region in regions(item, options)
        for shape in (_polygons(region, options) if options.polygons else [_mask(region)])
    ]
    return Made(part={"name": item.name, "width": width, "height": height, "shapes": shapes})


def runs(mask: Mask) -> list[int]:
    """Row by row, outside and inside in turn."""
    changes = np.flatnonzero(np.diff(mask.ravel(), prepend=False)).tolist()
    lengths: list[int] = np.diff(changes, prepend=0, append=mask.size).tolist()
    return lengths


def _mask(region: Region) -> dict[str, Any]:
    left, top, width, height = region.box
    text = ", ".join(map(str, runs(region.mask)))
    return {"mask": {"rle": text, "left": left, "top": top, "width": width, "height": height}}


def _polygons(region: Region, options: Options) -> Iterator[dict[str, Any]]:
    for polygon in outlines(region, options):
        points = ";".join(f"{x:.2f},{y:.2f}" for x, y in polygon.with_cuts().tolist())
        yield {"polygon": {"points": points}}


def gather(parts: Parts, classes: Classes, options: Options) -> Iterator[Whole]:
    del options
    yield "annotations.xml", _document(parts, classes)


def _document(parts: Parts, classes: Classes) -> Iterator[bytes]:
    count = sum(1 for _ in parts)
    yield b'<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n'
    yield b"  <version>1.1</version>\n  <meta>\n    <task>\n      <name>naclip</name>\n"
    yield f"      <size>{count}</size>\n      <mode>annotation</mode>\n      <labels>\n".encode()
    for name, colour in zip(classes.things, classes.colours()[classes.first :], strict=True):
        yield _label(name, "#{:02x}{:02x}{:02x}".format(*colour.tolist())).encode()
    yield b"      </labels>\n    </task>\n  </meta>\n"
    for number, part in enumerate(parts):
        head = {"id": number, "name": part["name"]}
        head |= {"width": part["width"], "height": part["height"]}
        yield f"  <image{_attributes(head)}>\n".encode()
        for shape in part["shapes"]:
            yield _shape(shape).encode()
        yield b"  </image>\n"
    yield b"</annotations>\n"


def _label(name: str, colour: str) -> str:
    score = (
        f"<attribute><name>{SCORE}</name><mutable>True</mutable><input_type>text</input_type>"
        "<default_value></default_value><values></values></attribute>"
    )
    return (
        f"        <label><name>{escape(name)}</name><color>{colour}</color><type>any</type>"
        f"<attributes>{score}</attributes></label>\n"
    )


def _shape(shape: dict[str, Any]) -> str:
    kind = "mask" if "mask" in shape else "polygon"
    head = {"label": shape["label"], "source": "auto", "occluded": 0, "z_order": 0}
    text = f"    <{kind}{_attributes(head | shape[kind])}>"
    if shape["score"] is not None:
        text += f'<attribute name="{SCORE}">{shape["score"]:g}</attribute>'
    return text + f"</{kind}>\n"


def _attributes(values: dict[str, Any]) -> str:
    return "".join(f" {key}={quoteattr(str(value))}" for key, value in values.items())


FORMAT = Format(
    "CVAT for images 1.1: XML of masks or polygons",
    ".xml",
    make,
    gather,
    holes="in masks; polygons have cuts to them",
    scores="an attribute",
)
