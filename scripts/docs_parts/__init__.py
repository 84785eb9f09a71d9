"""What scripts/docs is made of: references, links, code blocks, notebooks, the site."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
