"""Checkpoints that are damaged, of something else, or meant to do harm: refused in one line."""

from __future__ import annotations

import io
import os
import pickle
import random
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from naclip.clip.model import open_model
from naclip.errors import CheckpointError, SettingsError

from .families import (
    Tensors,
    features,
    open_clip_config,
    random_clip,
    write_json,
    write_openai_archive,
)

FORMATS = ["archive.pt", "plain.pt", "tiny.safetensors"]


@pytest.fixture(scope="module")
def weights() -> Tensors:
    return random_clip()


def refusal(path: Path | str, **options: Any) -> str:
    with pytest.raises((CheckpointError, SettingsError)) as caught:
        features(open_model(path, **options))
    text = str(caught.value)
    assert "\n" not in text
    return text


def written(path: Path, weights: Tensors) -> Path:
    if path.name == "archive.pt":
        write_openai_archive(path, weights)
    elif path.suffix == ".pt":
        torch.save(weights, path)
    else:
        save_file(weights, path)
    return path


class Harm:
    """Unpickled, it would run a command that leaves a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.trace}",)


def test_a_pickle_that_runs_a_command_is_refused_and_not_run(
    tmp_path: Path, weights: Tensors
) -> None:
    path, trace = tmp_path / "evil.pt", tmp_path / "it-ran"
    torch.save({**weights, "x": Harm(trace)}, path)
    text = refusal(path)
    assert text.startswith(f"{path}: damaged, or holds more than tensors and is not unpickled")
    assert not trace.exists()


def test_an_old_pickle_that_runs_a_command_is_refused_and_not_run(tmp_path: Path) -> None:
    path, trace = tmp_path / "evil.pt", tmp_path / "it-ran"
    torch.save({"x": Harm(trace)}, path, _use_new_zipfile_serialization=False)
    assert "not a checkpoint: expected safetensors or a PyTorch zip archive" in refusal(path)
    path.write_bytes(pickle.dumps(Harm(trace)))
    refusal(path)
    assert not trace.exists()


def fake_archive(path: Path, data: bytes, **storages: bytes) -> Path:
    """What is told apart from a plain .pt by constants.pkl, and is read by our own unpickler."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("evil/constants.pkl", pickle.dumps(()))
        archive.writestr("evil/data.pkl", data)
        for key, content in storages.items():
            archive.writestr(f"evil/data/{key.removeprefix('_')}", content)
    return path


def test_a_torchscript_archive_that_runs_a_command_is_refused_and_not_run(tmp_path: Path) -> None:
    trace = tmp_path / "it-ran"
    path = fake_archive(tmp_path / "evil.pt", pickle.dumps(Harm(trace)))
    assert "posix.system is not a tensor" in refusal(path)
    assert not trace.exists()


@pytest.mark.parametrize("function", ["eval", "exec", "getattr", "__import__", "open"])
def test_builtins_are_refused_in_an_archive(tmp_path: Path, function: str) -> None:
    data = b"c__builtin__\n" + function.encode() + b"\n."
    assert "is not a tensor" in refusal(fake_archive(tmp_path / "evil.pt", data))


class Claim:
    """A tensor that claims a storage of its own choosing."""

    def __init__(self, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
        self.arguments = (("storage",), offset, size, stride, False, OrderedDict())

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return torch._utils._rebuild_tensor_v2, self.arguments


class Claiming(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return ("storage", torch.FloatStorage, "0", "cpu", 4) if obj == ("storage",) else None


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((5,), (1,), 0), ((2, 2), (100, 1), 0), ((2,), (1,), 3), ((2,), (1,), -1), ((9**9,), (0,), 0)],
    ids=["too long", "stride out of bounds", "offset out of bounds", "negative", "much of little"],
)
def test_a_tensor_outside_of_its_storage_is_refused(
    tmp_path: Path, size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> None:
    buffer = io.BytesIO()
    Claiming(buffer, protocol=2).dump({"x": Claim(size, stride, offset)})
    path = fake_archive(tmp_path / "evil.pt", buffer.getvalue(), _0=b"\0" * 16)
    assert refusal(path).startswith(f"{path}: damaged")


def test_a_storage_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Claiming(buffer, protocol=2).dump({"x": Claim((4,), (1,), 0)})
    path = fake_archive(tmp_path / "evil.pt", buffer.getvalue(), _0=b"\0" * 12)
    assert "tensor data 0 is cut short" in refusal(path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_truncated_file_is_named(tmp_path: Path, weights: Tensors, name: str) -> None:
    path = written(tmp_path / name, weights)
    whole = path.read_bytes()
    for share in (0.02, 0.5, 0.99):
        path.write_bytes(whole[: int(len(whole) * share)])
        assert refusal(path).startswith(f"{path}: ")


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_an_error_or_a_model(tmp_path: Path, weights: Tensors, name: str) -> None:
    path = written(tmp_path / name, {k: t for k, t in weights.items() if "visual" not in k})
    whole = path.read_bytes()
    dice = random.Random(name)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 8)):  # at the ends, where structure is
            place = dice.randrange(3000)
            damaged[dice.choice([place, -place - 1])] = dice.randrange(256)
        path.write_bytes(damaged)
        with suppress(CheckpointError):
            open_model(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a checkpoint: expected safetensors or a PyTorch zip archive"),
        (b"<html>not found</html>", "(is the download complete?)"),
        (b"\xff" * 8 + b"{}", "damaged checkpoint ("),
        (b"PK\x05\x06" + b"\0" * 18, "damaged"),
    ],
)
def test_a_file_of_something_else_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    text = refusal(path)
    assert text.startswith(f"{path}: ")
    assert says in text


def test_other_things_in_a_pt_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    for content, says in (
        ([torch.zeros(2)], "expected tensors by name, found list"),
        ({"epoch": 3}, "holds no tensors"),
        ({"state_dict": 5}, "expected tensors by name, found int"),
        ({"a": torch.zeros(2)}, "found another model (a, ...)"),
        ({"visual.layer1.0.conv1.weight": torch.zeros(2)}, "found a ResNet CLIP"),
    ):
        torch.save(content, path)
        assert says in refusal(path)


CHANGES: list[tuple[str, Callable[[Tensors], object], str]] = [
    ("missing", lambda w: w.pop("visual.ln_post.bias"), "no tensor ln_post.bias"),
    ("missing text", lambda w: w.pop("ln_final.weight"), "no tensor ln_final.weight"),
    ("missing table", lambda w: w.pop("token_embedding.weight"), "no tensor 'token_embedding"),
    ("extra", lambda w: w.update({"visual.x": torch.ones(2)}), "unknown tensor x"),
    ("extra text", lambda w: w.update({"adapter.w": torch.ones(2)}), "unknown tensor adapter.w"),
    (
        "misshapen",
        lambda w: w.update({"visual.proj": torch.ones(128, 32, 1)}),
        "proj is (128, 32, 1), expected (128, 32)",
    ),
    (
        "of another block",
        lambda w: w.update({"visual.transformer.resblocks.1.ln_1.bias": torch.ones(64)}),
        "ln_1.bias is (64,), expected (128,)",
    ),
    (
        "no square",
        lambda w: w.update({"visual.positional_embedding": torch.ones(18, 128)}),
        "17 positions are no square grid",
    ),
    ("flat", lambda w: w.update({"visual.conv1.weight": torch.tensor(1.0)}), "no CLIP"),
    ("no blocks", lambda w: [w.pop(n) for n in list(w) if "resblocks" in n], "resblocks.0"),
    ("integers", lambda w: w.update({"ln_final.bias": torch.ones(64).int()}), "no tensor ln_fin"),
]


@pytest.mark.parametrize(("change", "says"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_tensors_that_do_not_fit_are_named(
    tmp_path: Path, weights: Tensors, change: Callable[[Tensors], object], says: str
) -> None:
    changed = dict(weights)
    change(changed)
    path = tmp_path / "tiny.safetensors"
    save_file(changed, path)
    text = refusal(path)
    assert says in text
    assert str(path) in text or path.name in text


def test_hugging_face_without_one_of_q_k_v_is_named(tmp_path: Path) -> None:
    stem = "vision_model.encoder.layers.0.self_attn."
    path = tmp_path / "model.safetensors"
    save_file({f"{stem}q_proj.weight": torch.ones(4, 4)}, path)
    assert "k_proj.weight" in refusal(path)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "expected a JSON object"),
        ('{"model_cfg": 5}', "no CLIP that can be understood"),
        ('{"model_cfg": {"vision_cfg": {"width": "x", "head_width": 1}}}', "no CLIP that can be"),
        ('{"model_cfg": {"text_cfg": {"heads": 7}}}', "7 heads do not divide the text width 64"),
        ('{"model_cfg": {"text_cfg": {"heads": 0}}}', "0 heads do not divide the text width 64"),
        ('{"model_cfg": {}, "preprocess_cfg": {"mean": 1, "std": 2}}', "no CLIP that can be und"),
    ],
)
def test_a_config_of_nonsense_is_named(
    tmp_path: Path, weights: Tensors, config: str, says: str
) -> None:
    (tmp_path / "open_clip_config.json").write_text(config)
    torch.save(weights, tmp_path / "open_clip_pytorch_model.bin")
    assert says in refusal(tmp_path)


def test_open_clip_without_its_config_is_refused(tmp_path: Path, weights: Tensors) -> None:
    path = tmp_path / "open_clip_pytorch_model.bin"
    torch.save(weights, path)
    says = "an OpenCLIP checkpoint without its open_clip_config.json does not say its activation"
    assert says in refusal(path)
    features(open_model(path, activation="gelu"))
    write_json(tmp_path / "open_clip_config.json", open_clip_config())
    features(open_model(path))


def test_a_folder_without_a_model_says_what_it_holds(tmp_path: Path) -> None:
    assert refusal(tmp_path).endswith("found nothing")
    (tmp_path / "notes.txt").touch()
    text = refusal(tmp_path)
    assert "expected open_clip_config.json with open_clip_model.safetensors or config.json" in text
    assert text.endswith("found notes.txt")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ViT-B/61", "no model 'ViT-B/61'; did you mean 'ViT-B/16'? (see naclip models)"),
        ("vit-b/16", "no model 'vit-b/16'; did you mean 'ViT-B/16'? (see naclip models)"),
        ("vitb16", "no model 'vitb16'; did you mean 'ViT-B/16'? (see naclip models)"),
        ("./nowhere/model.pt", "./nowhere/model.pt: no such file"),
        ("nowhere.safetensors", "nowhere.safetensors: no such file"),
        ("", "no model: use a name (see naclip models), a path or a hub id"),
        ("x" * 5000, "no model 'xxxx"),
    ],
)
def test_a_model_that_is_not_there_suggests(name: str, says: str) -> None:
    assert refusal(name).startswith(says)
