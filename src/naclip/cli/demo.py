"""`naclip demo`: see the method work within a minute, without weights or a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its pictures")] = Path(
        "naclip-demo"
    ),
    seed: Annotated[int, typer.Option(help="Which scene to draw")] = 3,
) -> None:
    """Draw a scene, segment it by words in three ways, and write a page of pictures."""
    from naclip.demo import run, write_page
    from naclip.demo.page import NEXT_STEPS
    from naclip.pipeline import load

    found = run(load("tiny"), seed)
    page = write_page(found, out)
    for (method, refined), miou in found.miou.items():
        print(f"{method:8}{'refined' if refined else 'raw':9}mIoU {miou:.2f}")
    print(f"\nThe page: {page.resolve()}\n\nOn a photo of yours, with CLIP's real weights:\n")
    print(NEXT_STEPS)
