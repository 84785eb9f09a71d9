"""Fixtures of the whole suite: nothing outside of temporary folders is read or written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from naclip.pipeline import Segmenter, load

from .recorded import recorded_file


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every test reads and writes a cache of this run alone, and never the network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NACLIP_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hub")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for one test."""
    folder = tmp_path / "naclip-cache"
    monkeypatch.setenv("NACLIP_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def segmenter() -> Segmenter:
    """The recorded random CLIP: 3 blocks, patch 16, 224 pixels."""
    return load(recorded_file("tiny-clip.safetensors"), device="cpu")
