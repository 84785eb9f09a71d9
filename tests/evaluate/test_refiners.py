"""`naclip reproduce refiners` as people run it, against counts made one pixel set at a time."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import naclip
from naclip.pipeline import Segmenter
from naclip.synthetic import CLASSES, draw

from ..cli.test_segment import run

SCENES = 2
Labels = NDArray[np.integer]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refiners") / "out"
    done = run(
        *("reproduce", "refiners", "synthetic", "-m", "tiny", "--limit", str(SCENES)),
        *("--out", str(folder)),
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "refiners.md").read_text() in done.stdout
    return folder


@cache
def scenes() -> list[tuple[NDArray[np.uint8], Labels]]:
    """The scenes of docs/tiny-model.md, drawn here: seeds from 7,000,000 on, two pixels a unit."""
    made = [draw(7_000_000 + n, (96, 128), scale=2, split="held-out") for n in range(SCENES)]
    return [(scene.image, scene.labels) for scene in made]


@cache
def tiny() -> Segmenter:
    return naclip.load("tiny")


@cache
def predictions(refiner: str) -> list[Labels]:
    """Each image by itself, as anybody segments one."""
    words = [
        "=".join([kind.name, *filter(None, [",".join(kind.all_names[1:])])]) for kind in CLASSES
    ]
    asked: dict[str, Any] = {"refine": False} if refiner == "none" else {"refiner": refiner}
    return [tiny()(image, words, **asked).labels for image, _ in scenes()]


def miou_of_sets(refiner: str) -> float:
    """Intersection over union of the sets of all pixels of a class, over all images."""
    pairs = list(zip(predictions(refiner), (truth for _, truth in scenes()), strict=True))
    found = []
    for label in range(len(CLASSES)):
        guessed = {(n, p) for n, (mine, _) in enumerate(pairs) for p in places(mine == label)}
        real = {(n, p) for n, (_, truth) in enumerate(pairs) for p in places(truth == label)}
        if guessed | real:
            found.append(len(guessed & real) / len(guessed | real))
    return 100 * float(np.mean(found))


def places(where: NDArray[np.bool_]) -> list[int]:
    return np.flatnonzero(where).tolist()


def boundary_f_of_distances(refiner: str) -> float:
    """Every distance between boundary pixels of the two masks, none more than two pixels."""
    found = []
    for label in range(len(CLASSES)):
        sums = np.zeros(4)
        for mine, (_, truth) in zip(predictions(refiner), scenes(), strict=True):
            guessed, real = outline(mine, label), outline(truth, label)
            apart = np.hypot(*(guessed[:, None] - real[None]).transpose(2, 0, 1))
            near = apart <= 2
            sums += [len(guessed), near.any(1).sum(), len(real), near.any(0).sum()]
        if sums[0] + sums[2]:
            shares = sums[[1, 3]] / np.maximum(sums[[0, 2]], 1)
            found.append(2 / (1 / shares).sum() if shares.all() else 0.0)
    return 100 * float(np.mean(found))


def outline(labels: Labels, label: int) -> NDArray[np.int64]:
    """(n, 2) pixels of the class with another class above, below, left or right."""
    wide = np.pad(labels.astype(int), 1, mode="edge")
    height, width = labels.shape
    around = [
        wide[1 + y : 1 + y + height, 1 + x : 1 + x + width]
        for y, x in ((-1, 0), (1, 0), (0, -1), (0, 1))
    ]
    return np.argwhere((labels == label) & np.any([other != label for other in around], 0))


def rows(out: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((out / "refiners.json").read_text())
    return {row["refiner"]: row for row in document["rows"]}


def test_numbers_are_those_of_an_independent_count(out: Path) -> None:
    found = rows(out)
    assert list(found) == ["none", "pamr", "guided", "crf"]
    for name, row in found.items():
        assert row["miou"] == pytest.approx(miou_of_sets(name), abs=1e-6), name
        assert row["boundary_f"] == pytest.approx(boundary_f_of_distances(name), abs=1e-6), name
        assert row["median_seconds"] > 0
    assert len({round(row["miou"], 3) for row in found.values()}) == 4, "each did something else"


def test_the_page_and_the_picture_say_the_same(out: Path) -> None:
    page = (out / "refiners.md").read_text()
    for name, row in rows(out).items():
        cells = [name, f"{row['miou']:.1f}", f"{row['boundary_f']:.1f}"]
        (line,) = (line for line in page.splitlines() if line.startswith(f"| {name} "))
        assert [cell.strip() for cell in line.strip("|").split("|")][:3] == cells
    assert f"{SCENES} images of synthetic" in page
    picture = np.asarray(Image.open(out / "refiners.png").convert("RGB"))
    height, width = scenes()[0][0].shape[:2]
    assert picture.shape[0] >= 2 * height
    assert picture.shape[1] >= 3 * width


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["synthetik"], "no data set 'synthetik'; did you mean 'synthetic'"),
        (["voc21"], "voc21 needs --data DIR"),
        (["synthetic", "--data", "."], "synthetic is drawn, not read: leave --data out"),
    ],
)
def test_misuse_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run("reproduce", "refiners", *arguments, "-m", "tiny", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
