"""Figures 1 and 2: what patches attend to in the last layer, and what that is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from naclip.errors import SettingsError
from naclip.evaluate.figures import new_figure, save
from naclip.evaluate.report import model_of, versions
from naclip.images import Picture
from naclip.methods.neighbourhood import gaussian
from naclip.pipeline import Segmenter
from naclip.settings import METHODS

METHODS_SHOWN = {"clip": "CLIP", "sclip": "SCLIP", "naclip": "NACLIP"}
SIDE = 2.6  # inches of a panel

Patch = tuple[int, int]


def parse_patch(text: str) -> Patch:
    """`R,C` -> (row, column), from 0 at the top left."""
    row, _, column = text.partition(",")
    if not (row.strip().isdigit() and column.strip().isdigit()):
        raise SettingsError(
            f"--patch is {text!r}: expected ROW,COLUMN of the patch grid, like 10,14"
        )
    return int(row), int(column)


def _checked(patches: Sequence[Patch], grid: Patch) -> list[Patch]:
    for row, column in patches:
        if row >= grid[0] or column >= grid[1]:
            raise SettingsError(
                f"patch {row},{column} is outside the image's grid: use rows 0..{grid[0] - 1} and "
                f"columns 0..{grid[1] - 1}"
            )
    middle = (grid[0] // 2, grid[1] // 2)
    return list(patches) or [middle, (middle[0], min(middle[1] + 1, grid[1] - 1))]


def attention(
    segmenter: Segmenter, picture: Picture, patches: Sequence[Patch], out: Path
) -> list[Path]:
    """Figure 1: a row for each patch, a column for each method."""
    defaults = segmenter.model.defaults
    methods = [METHODS[name] for name in METHODS_SHOWN]
    methods[-1] = replace(methods[-1], sigma=defaults.method.sigma)
    trace = segmenter.trace_whole(picture, defaults.windowing)
    maps = segmenter.attention_of(trace, methods)
    grid = maps[0].shape[0], maps[0].shape[1]
    chosen = _checked(patches, grid)
    figure = new_figure(SIDE * (1 + len(maps)), SIDE * len(chosen) * _ratio(picture) + 0.4)
    axes = figure.subplots(len(chosen), 1 + len(maps), squeeze=False)
    for line, patch in zip(axes, chosen, strict=True):
        _draw_marked(line[0], picture, patch, grid)
        line[0].set_ylabel(f"patch {patch[0]},{patch[1]}")
        for axis, (title, values) in zip(
            line[1:], zip(METHODS_SHOWN.values(), maps, strict=True), strict=True
        ):
            _draw_map(axis, picture, values[patch])
            if patch == chosen[0]:
                axis.set_title(title)
    _bare(axes)
    numbers = {
        "image": picture.name,
        "grid": list(grid),
        "patches": [list(patch) for patch in chosen],
        "attention": {
            name: [np.round(values[patch], 6).tolist() for patch in chosen]
            for name, values in zip(METHODS_SHOWN, maps, strict=True)
        },
        **_provenance(segmenter),
    }
    caption = (
        "Attention maps of the last layer (mean over heads) for the patches framed in red, under "
        "CLIP, SCLIP and NACLIP, each from its smallest to its largest value. The paper's Figure 1."
    )
    return save(figure, out, "attention", caption, numbers)


def schematic(
    segmenter: Segmenter, picture: Picture, patches: Sequence[Patch], out: Path
) -> list[Path]:
    """Figure 2: similarities of one patch, the Gaussian around it, and their sum."""
    sigma = segmenter.model.defaults.method.sigma
    qk, kk, omega = _ingredients(segmenter, picture, sigma)
    grid = qk.shape[0], qk.shape[1]
    patch = _checked(patches, grid)[0]
    panels = {
        "[q k$^T$] (CLIP)": qk[patch],
        "[k k$^T$]": kk[patch],
        "$\\omega$": omega[patch],
        "[k k$^T$] + $\\omega$ (NACLIP)": kk[patch] + omega[patch],
    }
    figure = new_figure(SIDE * 5, SIDE * _ratio(picture) + 0.5)
    axes = figure.subplots(1, 5, squeeze=False)
    _draw_marked(axes[0, 0], picture, patch, grid)
    axes[0, 0].set_title("image")
    for axis, (title, values) in zip(axes[0, 1:], panels.items(), strict=True):
        axis.imshow(values, cmap="viridis")
        axis.plot(patch[1], patch[0], marker="*", color="red", markersize=10)
        axis.set_title(title)
    _bare(axes)
    names = ("qk", "kk", "omega", "kk + omega")
    numbers = {
        "image": picture.name,
        "patch": list(patch),
        "sigma": sigma,
        "logits": {
            name: np.round(values, 6).tolist()
            for name, values in zip(names, panels.values(), strict=True)
        },
        **_provenance(segmenter),
    }
    caption = (
        "How the logits of the starred patch's attention come about: CLIP compares its query with "
        "all keys; NACLIP compares keys and adds a Gaussian around the patch. Products are scaled "
        "by 1/sqrt(d) and a mean over heads; the softmax is left out. Figure 2 of the paper."
    )
    return save(figure, out, "schematic", caption, numbers)


@torch.inference_mode()
def _ingredients(
    segmenter: Segmenter, picture: Picture, sigma: float
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """(h, w, h, w) of q k^T, k k^T and omega for the last block, the whole image at once."""
    trace = segmenter.trace_whole(picture, segmenter.model.defaults.windowing)
    block = segmenter.vision.blocks[-1]
    q, k, _ = block.attn.qkv(block.ln_1(trace.inputs[-1]))
    keys = k.transpose(-2, -1) * block.attn.scale
    logits = [(x @ keys)[0].mean(dim=0) for x in (q, k)]
    logits.append(gaussian(trace.grid, sigma, segmenter.device))
    qk, kk, omega = (
        x[1:, 1:].float().reshape(*trace.grid, *trace.grid).cpu().numpy() for x in logits
    )
    return qk, kk, omega


def _draw_marked(axis: Any, picture: Picture, patch: Patch, grid: Patch) -> None:
    """The image with a red frame around a patch."""
    from matplotlib.patches import Rectangle

    height, width = picture.size[0] / grid[0], picture.size[1] / grid[1]
    corner = (patch[1] * width, patch[0] * height)
    axis.imshow(picture.rgb, extent=(0, picture.size[1], picture.size[0], 0))
    axis.add_patch(Rectangle(corner, width, height, fill=False, edgecolor="white", linewidth=3))
    axis.add_patch(Rectangle(corner, width, height, fill=False, edgecolor="red", linewidth=1.5))


def _draw_map(axis: Any, picture: Picture, values: NDArray[Any]) -> None:
    """The map over the image in grey, so that what is attended to can be recognised."""
    height, width = picture.size
    smooth = cv2.resize(values.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    axis.imshow(cv2.cvtColor(picture.rgb, cv2.COLOR_RGB2GRAY), cmap="gray")
    axis.imshow(smooth, cmap="viridis", alpha=0.65)


def _bare(axes: Any) -> None:
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])


def _ratio(picture: Picture) -> float:
    return picture.size[0] / picture.size[1]


def _provenance(segmenter: Segmenter) -> dict[str, Any]:
    return {"model": model_of(segmenter), "versions": versions()}
