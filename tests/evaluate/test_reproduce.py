"""Tables and figures: the paper's own numbers, titles of subsets, files that are written."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from naclip import vocabulary
from naclip.errors import MissingExtraError, SettingsError
from naclip.evaluate import heuristic, markdown, published, reproduce, tables
from naclip.evaluate.analysis import name_variants
from naclip.evaluate.figures import new_figure
from naclip.evaluate.figures.draw import Request, figure
from naclip.evaluate.folder import open_folder
from naclip.evaluate.jobs import Job
from naclip.evaluate.report import compared
from naclip.evaluate.run import Evaluated, Options
from naclip.pipeline import Segmenter
from naclip.settings import find_preset

from .test_compare import own_folder
from .test_run import PLAIN, Silent, opened, voc

APPENDIX = {  # sigma: patches for tau 0.7, 0.8, 0.9, as the paper's appendix prints them
    1: [1, 1, 1],
    2: [9, 5, 1],
    3: [21, 13, 5],
    4: [37, 21, 9],
    5: [57, 37, 21],
    6: [81, 49, 21],
    7: [109, 69, 37],
    8: [145, 89, 45],
    9: [177, 113, 57],
    10: [221, 137, 69],
}


def test_sigma_heuristic_prints_the_papers_appendix(tmp_path: Path) -> None:
    assert heuristic.counts() == list(APPENDIX.values())
    text = reproduce.sigma_heuristic(tmp_path)[0].read_text()
    for sigma, counts in APPENDIX.items():
        assert f"| {sigma} | " + " | ".join(f"**{n}** ({n})" for n in counts) in text


def test_averages_that_the_paper_prints_are_those_of_its_rows() -> None:
    """A slip of the pen in published.toml would show: the paper rounds to a tenth."""
    rows = [r for t in ("main", "attention", "architecture") for r in published.tables()[t]]
    complete = [row for row in rows if not math.isnan(row["average"])]
    assert len(complete) == 15
    for row in complete:
        assert sum(row["miou"]) / 8 == pytest.approx(row["average"], abs=0.051), row["system"]
    for row in published.tables()["backbones"]:
        for model, average in row["average"].items():
            assert sum(row[model]) / 2 == pytest.approx(average, abs=0.051), row["system"]


def test_averages_are_printed_as_the_paper_rounds_them() -> None:
    """The mean of 64.1 and 38.4 is 51.25, which the paper prints as 51.3."""
    rows = {row.system: row for row in tables.rows_of("backbones", "ViT-B/16", False, ())}
    assert markdown.cell(None, rows["NACLIP"].published_average) == "- (51.3)"


class _Model:
    name, fingerprint = "ViT-B/16", ""


@pytest.mark.parametrize(
    ("benchmark", "changes", "expected"),
    [
        ("voc21", {}, 64.1),
        ("voc21", {"refine": False}, 58.9),
        ("ade20k", {"refine": False, "method": "clip"}, 3.2),
        ("cityscapes", {"method": "sclip"}, 34.1),
        ("voc21", {"method": "gem", "refine": False}, 46.2),
        ("coco_object", {"method": "gem", "refine": False}, None),  # not printed
        ("voc21", {"method": "gem", "refine": False, "depth": 3}, None),
        ("voc21", {"depth": 3}, 64.1),  # NACLIP has no dual path
        ("voc21", {"sigma": 3.0}, None),
        ("voc21", {"threshold": 0.2}, None),
        ("context60", {"whole": True}, None),
    ],
)
def test_the_papers_number_for_a_setting(
    benchmark: str, changes: dict[str, object], expected: float | None
) -> None:
    settings = find_preset(benchmark).updated(**changes)
    assert published.same_setting(benchmark, settings, _Model()) == expected  # type: ignore[arg-type]


def test_other_prompts_or_names_have_no_number_in_the_paper(
    segmenter: Segmenter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything else being as the paper has it."""
    monkeypatch.setattr(published, "same_setting", lambda *_: 50.0)
    data = opened(voc(tmp_path, 1))
    job = Job("main", data, data.words, data.settings)
    fewer = replace(job, words=name_variants(data.words)["without synonyms"])
    matrix = np.eye(21, dtype=np.int64)

    def printed(job: Job, prompts: tuple[str, ...]) -> object:
        found = Evaluated(job, {}, {}, 0.0)
        return compared(found, segmenter, prompts, matrix)

    the_80 = vocabulary.templates()
    assert printed(job, the_80) == {"miou_percent": 50, "difference": 50, "same_images": False}
    assert printed(job, PLAIN) is None
    assert printed(fewer, the_80) is None


def test_other_weights_have_no_number_in_the_paper(segmenter: Segmenter) -> None:
    assert published.same_setting("voc21", find_preset("voc21"), segmenter.model) is None


def test_table_main_has_the_papers_rows_and_marks() -> None:
    rows = tables.rows_of("main", "ViT-B/16", False, ())
    assert len(rows) == 15
    ours = [(row.system, row.post) for row in rows if row.method]
    assert ours == [
        ("CLIP", False),
        ("MaskCLIP", False),
        ("CLIP Surgery", False),
        ("GEM", False),
        ("SCLIP", False),
        ("NACLIP", False),
        ("SCLIP", True),
        ("NACLIP", True),
    ]
    unfair = {row.system for row in rows if not row.fair}
    assert unfair == {
        "GroupViT", "CLIP-DIY", "ReCo", "TCL", "FreeSeg-Diff", "FOSSIL", "PnP-OVSS",
    }  # fmt: skip
    everything = tables.rows_of("main", "ViT-B/16", True, ())
    assert sum(row.method is not None for row in everything) == 12


def test_table_attention_is_in_the_block_as_trained() -> None:
    rows = tables.rows_of("attention", "ViT-B/16", False, ())
    made = [(r.method.similarity, r.method.neighbours, r.method.block) for r in rows if r.method]
    assert made == [
        ("qk", "off", "vanilla"),
        ("none", "scaled", "vanilla"),
        ("none", "gaussian", "vanilla"),
        ("kk", "off", "vanilla"),
        ("kk", "gaussian", "vanilla"),
    ]


def request(root: Path, out: Path, **changes: object) -> reproduce.Request:
    given = {"models": ["any"], "given": [f"voc={root}"], "limit": 1, "out": out}
    return reproduce.Request(**{**given, **changes}, options=Options(prompts=PLAIN))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["architecture", "backbones"])
def test_a_table_of_a_subset_says_so_in_its_title(
    segmenter: Segmenter, tmp_path: Path, name: str
) -> None:
    asked = request(voc(tmp_path), tmp_path / "out", keep_runs=True)
    paths = reproduce.table(name, asked, lambda model: segmenter, Silent())
    text = paths[0].read_text()
    assert "SUBSET" in text.splitlines()[0]
    assert "voc21: 1 of 1,449 images" in text
    made = json.loads(paths[1].read_text())
    assert made["models"][0]["rows"][0]["ours"]["voc21"]["miou"] is not None
    assert len(list((tmp_path / "out/runs").glob("*.json"))) >= 2
    assert not list((tmp_path / "out/records").iterdir())


def test_data_that_is_not_there(segmenter: Segmenter, tmp_path: Path) -> None:
    asked = request(tmp_path, tmp_path / "out")
    with pytest.raises(Exception, match=r"expected JPEGImages/"):
        reproduce.table("main", asked, lambda model: segmenter, Silent())
    with pytest.raises(SettingsError, match="no data: use --data NAME=DIR"):
        reproduce.table(
            "main",
            reproduce.Request(["any"], [], None, tmp_path, Options(prompts=PLAIN)),
            lambda model: segmenter,
            Silent(),
        )
    with pytest.raises(SettingsError, match="did you mean 'attention'"):
        reproduce.table("atention", asked, lambda model: segmenter, Silent())


@pytest.mark.parametrize("name", ["attention", "schematic", "qualitative", "sigma"])
def test_figures_are_written_as_png_and_pdf_with_their_numbers(
    segmenter: Segmenter, tmp_path: Path, name: str
) -> None:
    pytest.importorskip("matplotlib")
    root = voc(tmp_path, 2)
    image = root / "JPEGImages/2007_000000.jpg"
    patches = ["1,2", "2,2"] if name == "attention" else ["1,2"]
    asked = Request(
        image, patches, [], [f"voc21={root}"], 1, tmp_path, Options(prompts=PLAIN), "any"
    )
    png, pdf, numbers, text = figure(name, asked, segmenter, Silent())
    assert min(Image.open(png).size) > 100
    assert pdf.read_bytes().startswith(b"%PDF")
    assert json.loads(numbers.read_text())["figure"] == name
    assert png.name in text.read_text()


def test_attention_of_a_patch_outside_the_grid(segmenter: Segmenter, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    image = voc(tmp_path, 1) / "JPEGImages/2007_000000.jpg"
    asked = Request(image, ["99,0"], [], [], None, tmp_path, Options(prompts=PLAIN), "any")
    with pytest.raises(SettingsError, match="outside the image's grid: use rows 0"):
        figure("attention", asked, segmenter, Silent())


def test_without_matplotlib_the_message_has_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'naclip\[figures\]'"):
        new_figure(1, 1)


def test_the_commands_load_without_torch() -> None:
    code = (
        "import sys; import naclip.cli.evaluate, naclip.cli.reproduce, naclip.cli.compare, "
        "naclip.cli.datasets; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_a_cell_of_nothing_but_void_is_empty(tmp_path: Path) -> None:
    data = open_folder(own_folder(tmp_path, 3), find_preset("ade20k"))
    nothing = dict.fromkeys("012", np.zeros((0, 3), np.int32))
    row = replace(tables.rows_of("architecture", None, False, ())[0], system="any")
    job = Job(row.key("folder"), data, data.words, data.settings)
    results = {job.key: Evaluated(job, nothing, {}, 0.0)}
    (made,) = tables.table_rows([row], ["folder"], results)
    assert made["ours"]["folder"]["miou"] is None
    assert made["ours"]["folder"]["interval"] is None


def test_a_table_of_a_part_of_a_folder_says_so_in_its_title(
    segmenter: Segmenter, tmp_path: Path
) -> None:
    asked = request(
        tmp_path, tmp_path / "out", given=[f"folder={own_folder(tmp_path, 0)}"], limit=2
    )
    text = reproduce.table("architecture", asked, lambda model: segmenter, Silent())[0].read_text()
    assert "SUBSET" in text.splitlines()[0]
    assert "folder: 2 of 3 images" in text
    whole = replace(asked, limit=None, out=tmp_path / "whole")
    text = reproduce.table("architecture", whole, lambda model: segmenter, Silent())[0].read_text()
    assert "SUBSET" not in text


def test_qualitative_of_two_data_sets_is_refused(segmenter: Segmenter, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    given = [f"voc={voc(tmp_path, 1)}"]
    asked = Request(None, [], [], given, 1, tmp_path, Options(prompts=PLAIN), "any")
    with pytest.raises(SettingsError, match=r"voc21 and voc20, .* use --data voc21=DIR"):
        figure("qualitative", asked, segmenter, Silent())
