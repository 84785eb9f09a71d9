"""Write a checkpoint as the file that ships: OpenAI's key names, fp16, the full token table.

`python training/export.py RUN_DIR [FILE]`; prints the file's size and sha256.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import torch
from compact import Renumbering
from safetensors.torch import save_file
from torch import Tensor

SHIPPED = Path(__file__).parents[1] / "src/naclip/data/tiny.safetensors"
MOST_BYTES = 20_000_000


def openai_state(model: dict[str, Tensor], renumber: Renumbering) -> dict[str, Tensor]:
    state = {}
    for name, tensor in model.items():
        if name == "pool_scale":  # of the training alone
            continue
        key = name.replace("vision.", "visual.", 1) if name.startswith("vision.") else name
        key = key.removeprefix("text.")
        whole = renumber.expand(tensor) if key == "token_embedding.weight" else tensor
        state[key] = whole.detach().half().contiguous()
    return state


def export(folder: Path, file: Path) -> None:
    saved = torch.load(folder / "checkpoint.pt", weights_only=False)
    state = openai_state(saved["model"], Renumbering())
    file.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"model": "naclip tiny", "images": str(saved["step"] * saved["recipe"]["batch"])}
    save_file(state, file, metadata)
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{file} has {size:,} bytes, more than {MOST_BYTES:,}")
    print(file, f"{size:,} bytes", "sha256", hashlib.sha256(file.read_bytes()).hexdigest())


if __name__ == "__main__":
    export(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else SHIPPED)
