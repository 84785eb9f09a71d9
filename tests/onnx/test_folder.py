"""What an export writes beside its graphs, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from naclip import vocabulary
from naclip.clip.model import ClipModel, open_model
from naclip.clip.tokens import clean
from naclip.errors import MissingExtraError, OutputError, SettingsError
from naclip.onnx import check, export, folder, graphs
from naclip.settings import Settings

from ..recorded import recorded, recorded_file, recorded_of


@pytest.fixture(scope="module")
def model() -> ClipModel:
    return open_model(recorded_file("tiny-clip.safetensors"))


def test_tokens_of_the_written_tokenizer_match_clips(recorded_export: Path) -> None:
    """Of the recorded texts, those that need no ftfy and no HTML: what it says it leaves out."""
    tokenizer = Tokenizer.from_file(str(recorded_export / "tokenizer.json"))
    answers, compared = recorded("tokens.npz"), 0
    for text, ids in zip(answers["texts"], answers["ids"], strict=True):
        plain = " ".join(str(text).split()).lower()
        if plain == clean(str(text)):
            found = tokenizer.encode(str(text)).ids
            assert found == ids[: len(found)].tolist(), text
            assert not ids[len(found) :].any()
            compared += 1
    assert compared >= 10


def test_config_and_vectors_are_those_of_the_benchmark(recorded_export: Path) -> None:
    config = json.loads((recorded_export / "config.json").read_text("utf-8"))
    theirs = recorded_of("text", "context60")
    names = [name for known in config["classes"] for name in known["names"]]
    assert names == [str(name).strip() for name in theirs["names"]]
    vectors = np.load(recorded_export / "words.npy")
    assert np.abs(vectors - theirs["features"]).max() <= 2e-5
    settings = config["settings"]
    assert (settings["short_side"], settings["window"], settings["stride"]) == (336, 224, 112)
    assert (settings["logit_scale"], settings["threshold"]) == (40, 0.1)
    assert config["cells"] == 14
    assert not [name for name in settings if name.startswith("refine")]
    assert len(config["templates"]) == 80
    assert max(config["differences_from_torch"].values()) <= check.WITHIN


def test_the_command_says_how_far_the_graphs_are_from_torch(tmp_path: Path) -> None:
    out = tmp_path / "onnx"
    command = [sys.executable, "-m", "naclip", "export", "onnx"]
    command += [str(recorded_file("tiny-clip.safetensors")), "-o", str(out)]
    command += ["--method", "clearclip", "--window", "64", "--stride", "32"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # nothing of what the exporter tells its own developers
    assert re.search(
        r"^vision graph: differs from torch by at most \d\.\de-0\d$", done.stdout, re.M
    )
    written = {path.name for path in out.iterdir()}
    assert written == {"vision.onnx", "text.onnx", "tokenizer.json", "config.json"}
    config = json.loads((out / "config.json").read_text("utf-8"))
    assert config["settings"]["similarity"] == "qq"
    assert "classes" not in config


def test_vectors_of_an_earlier_export_do_not_stay(
    model: ClipModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_vision", lambda *_: (b"", 0.0))
    monkeypatch.setattr(folder, "_text", lambda *_: (b"", 0.0))
    export(model, tmp_path, words=vocabulary.parse(["cat", "dog"]))
    assert (tmp_path / "words.npy").is_file()
    export(model, tmp_path)
    assert not (tmp_path / "words.npy").exists()


def test_a_graph_that_disagrees_with_torch_is_not_written(
    model: ClipModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exported with another Gaussian than it is compared with."""
    honest = graphs.vision_graph

    def wider(vision: graphs.Vision, *given: Any) -> bytes:
        other = graphs.Vision(model.vision, Settings().updated(sigma=9.0).method, side=64)
        return honest(other, *given)

    monkeypatch.setattr(graphs, "vision_graph", wider)
    with pytest.raises(OutputError, match=r"vision graph differs from torch by \S+, expected at"):
        export(model, tmp_path / "out", Settings().updated(window=64, stride=32, sigma=1.0))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"whole": True}, "takes windows of one size: leave whole out"),
        ({"scoring": "surgery"}, "scoring 'surgery' is no part of an ONNX graph: use cosine"),
        ({"window": 8, "stride": 8}, "window 8 is smaller than a patch of the model: use at least"),
        ({"method": "gem", "depth": 40}, "depth 40 of method 'gem' exceeds the model's blocks"),
    ],
)
def test_impossible_settings_are_refused(
    model: ClipModel, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        export(model, tmp_path, Settings().updated(**changes))


def test_a_tower_too_large_for_one_file_is_refused(
    model: ClipModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "LARGEST", 1000)
    with pytest.raises(OutputError, match=r"\(vision\) has .* GB of weights, and one ONNX file"):
        export(model, tmp_path)


@pytest.mark.parametrize("module", graphs.NEEDED)
def test_a_missing_module_names_the_extra(
    model: ClipModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    honest = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == module else honest(name)
    )
    with pytest.raises(MissingExtraError, match=rf"needs {module}, .*pip install 'naclip\[onnx\]'"):
        export(model, tmp_path)
