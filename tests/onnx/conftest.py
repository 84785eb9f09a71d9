"""Folders as `naclip export onnx` writes them, each made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from naclip import vocabulary
from naclip.clip.model import open_model
from naclip.onnx import export
from naclip.settings import PRESETS

from ..recorded import recorded_file

TINY_WORDS = ("couch", "carpet=rug", "brick")


@pytest.fixture(scope="session")
def recorded_export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded random CLIP with the settings and words of the benchmark context60."""
    folder = tmp_path_factory.mktemp("onnx") / "context60"
    model = open_model(recorded_file("tiny-clip.safetensors"))
    export(model, folder, PRESETS["context60"], vocabulary.load("context60"))
    return folder


@pytest.fixture(scope="session")
def tiny_export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model inside the package."""
    folder = tmp_path_factory.mktemp("onnx") / "tiny"
    export(open_model("tiny"), folder, words=vocabulary.parse(TINY_WORDS))
    return folder
