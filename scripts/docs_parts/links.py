"""Links between the pages, and from them to files of the repository."""

from __future__ import annotations

import re
from pathlib import Path

from docs_parts import ROOT

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)|<img [^>]*src=\"([^\"]+)\"")
FENCE = re.compile(r"^(```|~~~).*?^\1$", re.M | re.S)
HEADING = re.compile(r"^#+ +(.+)$", re.M)


def broken_links(page: Path) -> list[str]:
    found = []
    for match in LINK.finditer(FENCE.sub("", page.read_text())):
        target, anchor = match[1] or match[3] or "", match[2]
        if "://" in target or target.startswith("mailto:"):
            continue
        file = page.parent / target if target else page
        where = page.relative_to(ROOT)
        if not file.exists():
            found.append(f"{where}: no such file: {target}")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            found.append(f"{where}: no such heading: {target}#{anchor}")
    return found


def anchors(page: Path) -> set[str]:
    """As GitHub and the site make them of headings."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in headings}
