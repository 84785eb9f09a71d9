"""The paper's figures: each is drawn to PNG and PDF, with its numbers as JSON beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from naclip.errors import MissingExtraError
from naclip.evaluate.record import made_folder
from naclip.evaluate.report import write_json
from naclip.files import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = ("attention", "schematic", "qualitative", "sigma")
FORMAT = "naclip figure 1"


def new_figure(width: float, height: float) -> Figure:
    """Without pyplot: no window system, no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "figures need matplotlib, which is not installed: pip install 'naclip[figures]'"
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def save(
    figure: Figure, out: Path, name: str, caption: str, numbers: Mapping[str, Any]
) -> list[Path]:
    """NAME.png, .pdf, .json and .md in a folder."""
    made_folder(out)
    stem = f"figure-{name}"
    paths = [out / f"{stem}{suffix}" for suffix in (".png", ".pdf", ".json", ".md")]
    with atomic(paths[0]) as file:
        figure.savefig(file, format="png", dpi=150)
    with atomic(paths[1]) as file:
        figure.savefig(file, format="pdf", metadata={"CreationDate": None})
    write_json(paths[2], {"format": FORMAT, "figure": name, "caption": caption, **numbers})
    with atomic(paths[3]) as file:
        file.write(f"![{name}]({paths[0].name})\n\n{caption}\n".encode())
    return paths
