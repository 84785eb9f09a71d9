"""What is remembered between runs: found again, never mixed up, and never in the way."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from naclip import cache
from naclip.clip import names
from naclip.clip.model import ClipModel, open_model
from naclip.clip.text import TextTower, encode_names
from naclip.clip.tokens import clip_tokenizer

from .clip.families import write_json
from .recorded import recorded_file

TEMPLATES = ("a photo of a {}.", "{}")
TINY = "tiny-clip.safetensors"


@pytest.fixture
def model() -> ClipModel:
    return open_model(recorded_file(TINY))


@pytest.fixture
def silent_tower(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the text tower ran")

    monkeypatch.setattr(TextTower, "forward", refuse)


def features(model: ClipModel, *words: str, templates: tuple[str, ...] = TEMPLATES) -> torch.Tensor:
    return names.text_features(model, words, templates)


def test_a_second_run_does_not_touch_the_text_tower(
    fresh_cache: Path, model: ClipModel, request: pytest.FixtureRequest
) -> None:
    first = features(model, "cat", "dog", "sea")
    expected = encode_names(model.text, ["cat", "dog", "sea"], TEMPLATES, clip_tokenizer())
    assert torch.equal(first, expected)
    request.getfixturevalue("silent_tower")
    again = open_model(recorded_file(TINY))
    assert torch.equal(features(again, "cat", "dog", "sea"), first)
    assert torch.equal(features(again, "sea", "cat"), first[[2, 0]])
    assert "text" not in vars(again)  # not even built
    with pytest.raises(AssertionError, match="the text tower ran"):
        features(again, "cat", "horse")


def test_only_unknown_names_are_encoded(
    fresh_cache: Path, model: ClipModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    features(model, "cat", "dog")
    asked: list[list[str]] = []

    def spy(tower: TextTower, words: list[str], *rest: object) -> torch.Tensor:
        asked.append(words)
        return encode_names(tower, words, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(names, "encode_names", spy)
    features(model, "horse", "cat", "horse")
    assert asked == [["horse"]]


def test_weights_templates_and_activation_do_not_share(fresh_cache: Path, tmp_path: Path) -> None:
    path = recorded_file(TINY)
    plain = open_model(path)
    other = tmp_path / "other.safetensors"
    tensors = {name: t.float() for name, t in plain._tensors.items()}
    tensors["ln_final.bias"] = tensors["ln_final.bias"] + 1
    save_file(tensors, other)
    found = [
        features(plain, "cat"),
        features(open_model(other), "cat"),
        features(open_model(path, activation="gelu"), "cat"),
        features(plain, "cat", templates=("a drawing of a {}.",)),
        features(plain, "cat", templates=TEMPLATES[:1]),
        features(plain, "Cat."),
    ]
    for index, one in enumerate(found):
        assert all(not torch.equal(one, two) for two in found[:index])


def test_heads_of_the_config_do_not_share(fresh_cache: Path, tmp_path: Path) -> None:
    """The same file of weights, read with another count of heads, gives other features."""
    tensors = {name: t.float() for name, t in open_model(recorded_file(TINY))._tensors.items()}
    torch.save(tensors, tmp_path / "open_clip_pytorch_model.bin")
    found = []
    for heads in (1, 4):
        config = {"model_cfg": {"quick_gelu": True, "text_cfg": {"heads": heads}}}
        write_json(tmp_path / "open_clip_config.json", config)
        found.append(features(open_model(tmp_path), "cat"))
    assert not torch.allclose(*found)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=9), st.binary(max_size=40), max_size=8))
def test_values_come_back_as_they_were_put(values: dict[str, bytes]) -> None:
    values = {f"round trip {key}": value for key, value in values.items() if "\ud800" not in key}
    cache.put(values)
    assert cache.get([*values, "never put"]) == values


@pytest.mark.parametrize("damage", ["all", "start", "middle"])
def test_a_corrupt_database_recovers(fresh_cache: Path, damage: str) -> None:
    cache.put({f"key {i}": b"x" * 500 for i in range(200)})
    file = fresh_cache / "cache.sqlite"
    content = bytearray(file.read_bytes())
    noise = np.random.default_rng(0).bytes(len(content))
    if damage == "all":
        content[:] = noise
    elif damage == "start":
        content[:50] = noise[:50]
    else:
        content[4096:] = noise[4096:]
    file.write_bytes(content)
    cache.get([f"key {i}" for i in range(200)])  # whatever it finds, it does not fail
    cache.put({"new": b"value"})
    cache.put({"new": b"value"})
    assert cache.get(["new"]) == {"new": b"value"}


def test_an_unwritable_folder_costs_time_and_no_result(
    tmp_path: Path, model: ClipModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "a file"
    in_the_way.touch()
    monkeypatch.setenv("NACLIP_CACHE", str(in_the_way / "folder"))
    assert features(model, "cat").shape == (1, 64)
    assert cache.get(["cat"]) == {}
    assert cache.sha256(recorded_file(TINY)) == model.fingerprint


def test_a_locked_database_is_left_alone(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put({"key": b"value"})
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, timeout: connect(path, timeout=0.05))
    other = connect(fresh_cache / "cache.sqlite")
    other.execute("begin exclusive")
    assert cache.get(["key"]) == {}
    cache.put({"key": b"other"})
    other.rollback()
    other.close()
    assert cache.get(["key"]) == {"key": b"value"}


def test_rows_are_bounded_and_the_longest_unused_go_first(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_ROWS", 3)
    clock = iter(range(1000))
    monkeypatch.setattr(cache.time, "time", lambda: float(next(clock)))
    for key in "abc":
        cache.put({key: b""})
    cache.get(["a"])
    cache.put({"d": b""})
    assert set(cache.get("abcd")) == {"a", "c", "d"}


def test_a_hash_follows_the_file(fresh_cache: Path, tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "file"
    for content in (b"one", b"other"):
        path.write_bytes(content)
        for _ in range(2):
            assert cache.sha256(path) == hashlib.sha256(content).hexdigest()
