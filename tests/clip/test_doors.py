"""The same weights through every door give the same features."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from naclip.clip.model import ClipModel, open_model
from naclip.clip.shape import OPENAI_MEAN
from naclip.errors import CheckpointError, SettingsError

from .families import (
    SHAPE,
    Tensors,
    assert_same_features,
    features,
    open_clip_config,
    random_clip,
    write_json,
    write_openai_archive,
)


@pytest.fixture(scope="module")
def weights() -> Tensors:
    return random_clip()


@pytest.fixture(scope="module")
def plain(weights: Tensors, tmp_path_factory: pytest.TempPathFactory) -> ClipModel:
    """Through safetensors in OpenAI's names, QuickGELU: the door of the parity tests."""
    path = tmp_path_factory.mktemp("plain") / "tiny.safetensors"
    save_file(weights, path)
    return open_model(path)


@pytest.fixture(scope="module")
def with_gelu(weights: Tensors, tmp_path_factory: pytest.TempPathFactory) -> ClipModel:
    path = tmp_path_factory.mktemp("gelu") / "tiny.safetensors"
    save_file(weights, path)
    return open_model(path, activation="gelu")


def test_shape_is_read_off_the_tensors(plain: ClipModel) -> None:
    assert plain.shape == SHAPE


def test_activations_differ(plain: ClipModel, with_gelu: ClipModel) -> None:
    for ours, theirs in zip(features(plain), features(with_gelu), strict=True):
        assert (ours - theirs).abs().max() > 1e-3


@pytest.mark.parametrize("markers", ["buffers", "attributes"])
def test_openais_archive(tmp_path: Path, weights: Tensors, plain: ClipModel, markers: str) -> None:
    path = tmp_path / "ViT-tiny.pt"
    write_openai_archive(path, weights, markers)
    assert_same_features(path, plain)
    assert_same_features(path, plain, activation="quick_gelu")
    with pytest.raises(CheckpointError, match="was trained with quick_gelu, asked for was gelu"):
        open_model(path, activation="gelu")


def test_openais_archive_matches_torch_jits_own_reading(tmp_path: Path, weights: Tensors) -> None:
    from naclip.clip.checkpoint import read_tensors

    path = tmp_path / "ViT-tiny.pt"
    write_openai_archive(path, weights)
    theirs = torch.jit.load(str(path)).state_dict()
    ours = read_tensors(path)
    assert theirs.keys() <= ours.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype, name
        assert torch.equal(ours[name], tensor), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_plain_state_dict_of_any_precision(
    tmp_path: Path, weights: Tensors, plain: ClipModel, dtype: torch.dtype
) -> None:
    path = tmp_path / "tiny.pt"
    torch.save({name: t.to(dtype) for name, t in weights.items()}, path)
    if dtype != torch.bfloat16:  # which the weights do not fit
        assert_same_features(path, plain)
    model = open_model(path)
    assert all(p.dtype == torch.float32 for p in model.vision.parameters())
    assert not any(p.requires_grad for p in model.vision.parameters())


def test_half_precision_safetensors(tmp_path: Path, weights: Tensors, plain: ClipModel) -> None:
    path = tmp_path / "tiny.safetensors"
    save_file({name: t.half() for name, t in weights.items()}, path)
    assert_same_features(path, plain)


@pytest.mark.parametrize("kind", ["bin", "safetensors"])
@pytest.mark.parametrize("quick", [True, False], ids=["quick_gelu", "gelu"])
def test_open_clips_folder(
    tmp_path: Path,
    weights: Tensors,
    plain: ClipModel,
    with_gelu: ClipModel,
    kind: str,
    quick: bool,
) -> None:
    extra = {"quick_gelu": True} if quick else {}
    write_json(tmp_path / "open_clip_config.json", open_clip_config(**extra))
    if kind == "bin":
        path = tmp_path / "open_clip_pytorch_model.bin"
        torch.save(weights, path)
    else:
        path = tmp_path / "open_clip_model.safetensors"
        save_file(weights, path)
    for door in (tmp_path, path):  # the folder, or the file in it
        assert_same_features(door, plain if quick else with_gelu)
    other = "gelu" if quick else "quick_gelu"
    with pytest.raises(CheckpointError, match=f"asked for was {other}"):
        open_model(path, activation=other)


def test_open_clips_mean_and_deviation_are_read(tmp_path: Path, weights: Tensors) -> None:
    write_json(tmp_path / "open_clip_config.json", open_clip_config())
    torch.save(weights, tmp_path / "open_clip_pytorch_model.bin")
    shape = open_model(tmp_path).shape
    assert shape.mean == (127.5, 127.5, 127.5)
    assert shape.std == (63.75, 63.75, 63.75)


def test_openais_mean_is_the_papers_rounding_of_it(tmp_path: Path, weights: Tensors) -> None:
    config = open_clip_config()
    mean, std = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    config["preprocess_cfg"] = {"mean": mean, "std": std}
    write_json(tmp_path / "open_clip_config.json", config)
    torch.save(weights, tmp_path / "open_clip_pytorch_model.bin")
    assert open_model(tmp_path).shape.mean == OPENAI_MEAN


def test_a_training_checkpoint_with_its_wrapping(
    tmp_path: Path, weights: Tensors, with_gelu: ClipModel
) -> None:
    """OpenCLIP's own: {"epoch", "state_dict", "optimizer"}, parameters under DDP's `module.`."""
    path = tmp_path / "epoch_32.pt"
    wrapped = {f"module.{name}": t for name, t in weights.items()}
    torch.save({"epoch": 32, "name": "run", "state_dict": wrapped, "optimizer": {}}, path)
    assert_same_features(path, with_gelu, activation="gelu")
    with pytest.raises(CheckpointError, match="choose --activation gelu or quick_gelu"):
        open_model(path)


def test_a_custom_text_tower(tmp_path: Path, weights: Tensors, plain: ClipModel) -> None:
    renamed = {
        name if name.startswith(("visual.", "logit")) else f"text.{name}": t
        for name, t in weights.items()
    }
    path = tmp_path / "custom.pt"
    torch.save(renamed, path)
    assert_same_features(path, plain)


def test_an_unknown_activation_suggests(tmp_path: Path, weights: Tensors) -> None:
    path = tmp_path / "tiny.pt"
    torch.save(weights, path)
    with pytest.raises(SettingsError, match="no activation 'quickgelu'; did you mean 'quick_gelu'"):
        open_model(path, activation="quickgelu")


def test_a_known_model_is_checked_by_its_sha256(tmp_path: Path, weights: Tensors) -> None:
    path = tmp_path / "ViT-B-16.pt"
    write_openai_archive(path, weights)
    says = r"is named like OpenAI's ViT-B/16, but its sha256 is \w{12}\.\.\., expected 5806e77cd80f"
    with pytest.raises(CheckpointError, match=says):
        open_model(path)


def test_heads_left_out_of_open_clips_config_are_its_defaults(
    tmp_path: Path, weights: Tensors
) -> None:
    """CLIPTextCfg.heads is 8, CLIPVisionCfg.head_width is 64."""
    config = open_clip_config()
    del config["model_cfg"]["text_cfg"]
    write_json(tmp_path / "open_clip_config.json", config)
    torch.save(weights, tmp_path / "open_clip_pytorch_model.bin")
    shape = open_model(tmp_path).shape
    assert (shape.vision.heads, shape.text.heads) == (2, 8)
