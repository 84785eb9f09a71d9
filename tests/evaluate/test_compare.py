"""What is printed and compared: one evaluation, two of the same images, the list of data sets."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from naclip.cli.main import app
from naclip.errors import UsageError
from naclip.evaluate import published
from naclip.evaluate.catalogue import entries, entry
from naclip.evaluate.compare import compare, draw
from naclip.evaluate.evaluation import evaluate
from naclip.evaluate.folder import open_folder
from naclip.evaluate.report import read_json
from naclip.evaluate.run import Options
from naclip.evaluate.show import show, show_comparison
from naclip.pipeline import Segmenter
from naclip.settings import METHODS, find_preset

from .layouts import write_image, write_mask
from .test_run import PLAIN, QUICK, Silent, opened, voc


def own_folder(root: Path, voids: int) -> Path:
    """Three images, of which the first few have a truth of nothing but void."""
    for index in range(3):
        write_image(root / f"images/{index}.jpg", 30, 40, index)
        mask = np.full((30, 40), 255 if index < voids else index % 2, np.uint8)
        write_mask(root / f"masks/{index}.png", mask)
    (root / "classes.txt").write_text("cat\ndog\n")
    return root


def shown(print_: Callable[[Console], None]) -> str:
    text = io.StringIO()
    print_(Console(file=text, width=120))
    return text.getvalue()


@pytest.mark.parametrize("voids", [1, 3])
def test_images_of_nothing_but_void_are_shown_and_compared(
    segmenter: Segmenter, tmp_path: Path, voids: int
) -> None:
    data = open_folder(own_folder(tmp_path, voids), find_preset("ade20k"))
    settings = data.settings.updated(**QUICK)
    made = evaluate(segmenter, data, settings, Options(prompts=PLAIN), Silent())
    assert (made["result"]["miou_interval"] is None) == (voids == 3)
    assert "3 of 3 images of folder" in shown(lambda console: show(made, console))
    found = compare(made, made)
    text = shown(lambda console: show_comparison(found, console, top=10))
    assert "  0: -" in text.splitlines()


def test_compare_by_class_and_image(segmenter: Segmenter, tmp_path: Path) -> None:
    data = opened(voc(tmp_path))
    made = []
    for name in ("naclip", "maskclip"):
        settings = data.settings.updated(method=METHODS[name], **QUICK)
        options = Options(prompts=PLAIN, masks=tmp_path / name)
        target = tmp_path / f"{name}.json"
        evaluate(segmenter, data, settings, options, Silent(), target=target)
        made.append(read_json(target))
    found = compare(*made)
    assert found["difference"] == made[1]["result"]["miou"] - made[0]["result"]["miou"]
    low, high = found["interval"]
    assert low <= found["difference"] <= high
    assert found["differs"]["method"] == ["naclip", "maskclip"]
    changes = [abs(entry["difference"]) for entry in found["by_image"]]
    assert changes == sorted(changes, reverse=True)
    assert compare(made[0], made[0])["interval"] == [0, 0]
    pictures = draw(*made, [found["by_image"][0]["image"]], tmp_path / "pictures")
    width, height = Image.open(pictures[0]).size
    assert width > 4 * 40  # image, truth, A, B
    assert height > 33 + 22 + 20  # the tallest image, its caption, the legend
    other = {**made[1], "data": {**made[1]["data"], "name": "ade20k"}}
    with pytest.raises(UsageError, match="one is of voc21, the other of ade20k"):
        compare(made[0], other)


def test_pictures_of_masks_that_one_run_wrote_over_the_others(
    segmenter: Segmenter, tmp_path: Path
) -> None:
    data = opened(voc(tmp_path, 1))
    settings = data.settings.updated(**QUICK)
    options = Options(prompts=PLAIN, masks=tmp_path / "masks")
    made = evaluate(segmenter, data, settings, options, Silent())
    with pytest.raises(UsageError, match="the second over the first"):
        draw(made, made, ["2007_000000"], tmp_path / "pictures")


def test_the_list_of_data_sets_breaks_no_name_and_no_address_at_80_columns() -> None:

    found = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["datasets"])
    lines = [line.strip() for line in found.output.splitlines()]
    for row in entries():
        assert any(line.startswith(f"{row['dataset']} ") for line in lines)
        assert row["page"] in lines


def test_the_list_of_data_sets_names_licence_size_page_and_tree() -> None:

    assert {row["dataset"] for row in entries()} >= set(published.tables()["benchmarks"])
    for row in entries():
        assert all(entry(row["dataset"])[key] for key in ("licence", "size", "page", "tree"))


def test_what_names_are_worth_is_said_and_no_class_is_broken_at_80_columns(
    segmenter: Segmenter, tmp_path: Path
) -> None:
    data = opened(voc(tmp_path, 1))
    settings = data.settings.updated(**QUICK)
    made = evaluate(segmenter, data, settings, Options(prompts=PLAIN), Silent(), analyses=["names"])
    text = io.StringIO()
    show(made, Console(file=text, width=80))
    lines = [line.split() for line in text.getvalue().splitlines()]
    for name in data.words.classes:
        assert any(line[:1] == [name] for line in lines)
    assert "…" not in text.getvalue()
    for variant, found in made["analysis"]["names"].items():
        lost = 100 * (found["miou"] - made["result"]["miou"])
        expected = f"names: {variant} mIoU {100 * found['miou']:.2f}, difference {lost:+.2f}"
        assert expected in text.getvalue()
