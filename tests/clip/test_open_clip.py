"""Features of checkpoints that the real OpenCLIP wrote, against its own (tests/clip/data)."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from naclip.clip.model import open_model

DATA = Path(__file__).parent / "data" / "open_clip"


@pytest.mark.parametrize("activation", ["gelu", "quick_gelu"])
@pytest.mark.parametrize("kind", ["plain", "custom_text"])
@torch.inference_mode()
def test_features_match_open_clips_own(tmp_path: Path, kind: str, activation: str) -> None:
    with np.load(DATA / "answers.npz") as answers:
        theirs = {name: torch.from_numpy(answers[name]) for name in answers.files}
    shutil.copy(DATA / f"{kind}.bin", tmp_path / "open_clip_pytorch_model.bin")
    shutil.copy(DATA / f"{kind}_{activation}.json", tmp_path / "open_clip_config.json")
    model = open_model(tmp_path)
    assert (model.shape.vision.heads, model.shape.text.heads) == (4, 4)
    assert model.shape.activation == activation
    image = model.vision(theirs["pixels"])
    text = torch.nn.functional.normalize(model.text(theirs["ids"]), dim=-1)
    for ours, name in ((image, "image"), (text, "text")):
        expected = theirs[f"{kind}_{activation}_{name}"]
        torch.testing.assert_close(ours, expected, rtol=0, atol=5e-6)
