"""Where everything stands: a seeded scene description that no longer depends on pixels."""

import math
from dataclasses import dataclass
from random import Random
from typing import Literal

import numpy as np
import numpy.typing as npt

from naclip.synthetic.classes import (
    BACKGROUNDS,
    COLOUR_NAMES,
    COLOURS,
    THINGS,
    SceneClass,
    held_out,
)

Split = Literal["train", "held-out"]

# Materials that can fill the upper part of a view; the rest of the view is ground.
_BACKDROPS = ("sky", "sky", "sky", "brick", "wood", "water")
_GROUNDS = ("grass", "sand", "water", "snow", "stone", "soil", "carpet", "road", "wood")


@dataclass(frozen=True)
class Region:
    """A part of the ground: where normal . (x, y) + wobble exceeds offset; the last one wins."""

    background: SceneClass
    variant: float
    seed: int
    normal: tuple[float, float]
    offset: float
    wobble: float
    texture: float
    angle: float


@dataclass(frozen=True)
class Thing:
    """One thing; x, y and radius in units (a unit is a pixel of the training resolution)."""

    kind: SceneClass
    colour: str
    rgb: tuple[float, float, float]
    x: float
    y: float
    radius: float
    angle: float
    flipped: bool
    texture: float
    seed: int


@dataclass(frozen=True)
class Layout:
    height: int
    width: int
    regions: tuple[Region, ...]
    things: tuple[Thing, ...]
    light: tuple[float, ...]


def _seed(rng: Random) -> int:
    return rng.randrange(1 << 20)


def _region(rng: Random, kind: SceneClass, normal: tuple[float, float], offset: float) -> Region:
    upright = kind.name == "sky" or rng.random() < 0.55
    angle = rng.gauss(0.0, 0.06) if upright else rng.uniform(-math.pi, math.pi)
    if kind.name == "sky":
        angle = 0.0
    wobble = 0.0 if rng.random() < 0.4 else rng.uniform(2.0, 8.0)
    texture = rng.uniform(0.85, 1.18)
    return Region(kind, rng.random(), _seed(rng), normal, offset, wobble, texture, angle)


def _named(name: str) -> SceneClass:
    return next(b for b in BACKGROUNDS if b.name == name)


def _regions(rng: Random, height: int, width: int) -> tuple[Region, ...]:
    everywhere = (0.0, 0.0)
    kind = rng.random()
    if kind < 0.16:
        return (_region(rng, rng.choice(BACKGROUNDS), everywhere, 1.0),)
    if kind < 0.58:  # a view with a horizon, at times with a nearer strip in front
        back = _named(rng.choice(_BACKDROPS))
        grounds = [_named(n) for n in _GROUNDS if n != back.name]
        near = rng.sample(grounds, 2)
        tilt = rng.gauss(0.0, 0.09)
        horizon = rng.uniform(0.25, 0.6) * height
        regions = [_region(rng, back, everywhere, 1.0)]
        regions.append(_region(rng, near[0], (tilt, 1.0), horizon + tilt * width / 2))
        if rng.random() < 0.35:
            edge = horizon + rng.uniform(0.35, 0.7) * (height - horizon)
            regions.append(_region(rng, near[1], (-2 * tilt, 1.0), edge - tilt * width))
        return tuple(regions)
    kinds = rng.sample(BACKGROUNDS, 3 if rng.random() < 0.35 else 2)
    regions = [_region(rng, kinds[0], everywhere, 1.0)]
    for other in kinds[1:]:
        turn = rng.uniform(-math.pi, math.pi)
        nx, ny = math.cos(turn), math.sin(turn)
        through_x = (0.5 + rng.uniform(-0.22, 0.22)) * width
        through_y = (0.5 + rng.uniform(-0.22, 0.22)) * height
        regions.append(_region(rng, other, (nx, ny), nx * through_x + ny * through_y))
    return tuple(regions)


def _background_under(regions: tuple[Region, ...], x: float, y: float) -> SceneClass:
    found = regions[0]
    for region in regions[1:]:
        if region.normal[0] * x + region.normal[1] * y > region.offset:
            found = region
    return found.background


def _colours_for(
    kind: SceneClass, under: SceneClass, present: list[SceneClass], split: Split
) -> list[str]:
    """Training avoids held-out triples with every background in sight; a held-out scene's things
    all form one with the background they stand on."""
    if split == "held-out":
        return [c for i, c in enumerate(COLOUR_NAMES) if held_out(kind.index, i, under.index)]
    return [
        c
        for i, c in enumerate(COLOUR_NAMES)
        if not any(held_out(kind.index, i, b.index) for b in present)
    ]


def _place(
    rng: Random, height: int, width: int, placed: list[Thing]
) -> tuple[float, float, float] | None:
    """Centre and radius of one more thing: overlap is allowed, hiding is not."""
    for _ in range(12):
        radius = rng.uniform(10.5, 19.0)
        x = rng.uniform(0.3 * radius, width - 0.3 * radius)
        y = rng.uniform(0.3 * radius, height - 0.3 * radius)
        if all(math.hypot(x - t.x, y - t.y) > 0.75 * (radius + t.radius) for t in placed):
            return x, y, radius
    return None


def _things(
    rng: Random, height: int, width: int, regions: tuple[Region, ...], split: Split
) -> tuple[Thing, ...]:
    present = [r.background for r in regions]
    area = height * width / 4096.0
    low, high = (1, 3) if split == "held-out" else (0, 3)
    count = round(rng.uniform(low - 0.3, high + 0.3) * area**0.8)
    placed: list[Thing] = []
    for _ in range(count):
        spot = _place(rng, height, width, placed)
        if spot is None:
            break
        x, y, radius = spot
        kind = rng.choice(THINGS)
        colour = rng.choice(_colours_for(kind, _background_under(regions, x, y), present, split))
        lightness = rng.uniform(0.86, 1.12)
        r, g, b = (c * lightness + rng.gauss(0.0, 9.0) for c in COLOURS[colour])
        angle = rng.gauss(0.0, 0.22) if rng.random() < 0.7 else rng.uniform(-math.pi, math.pi)
        flipped = rng.random() < 0.5
        texture = rng.uniform(0.85, 1.2)
        placed.append(
            Thing(kind, colour, (r, g, b), x, y, radius, angle, flipped, texture, _seed(rng))
        )
    return tuple(placed)


def plan(seed: int, size: tuple[int, int], split: Split) -> Layout:
    """The scene of a seed: (height, width) in units."""
    height, width = size
    # A string seed is hashed by SHA-512 inside Random: the same everywhere, for any split.
    rng = Random(f"naclip {split} {height}x{width} {seed}")
    regions = _regions(rng, height, width)
    things = _things(rng, height, width, regions, split)
    turn = rng.uniform(-math.pi, 0.0)
    tint = [rng.uniform(0.93, 1.07) for _ in range(3)]
    light = (
        rng.uniform(0.78, 1.14),
        math.cos(turn),
        math.sin(turn),
        *tint,
        rng.uniform(2.0, 11.0),
        rng.uniform(0.15, 0.45),
        float(_seed(rng)),
    )
    return Layout(height, width, regions, things, light)


def region_rows(layout: Layout) -> npt.NDArray[np.float64]:
    """The regions in the renderer's columns (see render.py)."""
    rows = [
        (
            r.background.index,
            r.variant,
            r.seed,
            r.normal[0],
            r.normal[1],
            r.offset,
            r.wobble,
            r.texture,
            math.cos(r.angle),
            math.sin(r.angle),
        )
        for r in layout.regions
    ]
    return np.array(rows, dtype=np.float64)


def thing_rows(layout: Layout) -> npt.NDArray[np.float64]:
    """The things in the renderer's columns (see render.py), back to front."""
    rows = [
        (
            t.kind.index - len(BACKGROUNDS),
            t.x,
            t.y,
            t.radius,
            math.cos(t.angle),
            math.sin(t.angle),
            -1.0 if t.flipped else 1.0,
            t.texture,
            *t.rgb,
            t.seed,
        )
        for t in layout.things
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), 12)
