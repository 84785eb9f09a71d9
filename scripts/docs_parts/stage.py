"""What the docs' code finds around it: two photos and a small CLIP in the hub's cache."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from docs_parts import ROOT

REPOSITORY = "openai/clip-vit-base-patch16"  # what "ViT-B/16" is fetched from


def set_stage(folder: Path) -> None:
    """A working folder with photos and the repository's examples."""
    from PIL import Image

    from naclip.synthetic import draw

    folder.mkdir(parents=True)
    for name, seed in (("photo.jpg", 3), ("street.jpg", 4)):
        Image.fromarray(draw(seed, (96, 128), scale=2).image).save(folder / name)
    (folder / "examples").symlink_to(ROOT / "examples")


def environment(home: Path) -> dict[str, str]:
    binaries = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": binaries,
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "NACLIP_CACHE": str(home / "naclip"),
    }


def fill_hub_cache(hub: Path) -> None:
    """A small CLIP in Hugging Face's layout where the hub client keeps what it downloaded."""
    sys.path.insert(0, str(ROOT / "tests"))
    from hub_layout import write_small_clip

    snapshot = hub / f"models--{REPOSITORY.replace('/', '--')}" / "snapshots" / "0000"
    snapshot.mkdir(parents=True)
    write_small_clip(snapshot)
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text(snapshot.name)
