"""The site of the docs: built by mkdocs without a network, and loading nothing from one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from docs_parts import ROOT

LOADED = re.compile(
    r"""<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
)
LOADED_BY_CSS = re.compile(r"""url\(["']?((?:https?:)?//[^"')]+)|@import\s+["']([^"']+)""")


def build_site(folder: Path) -> list[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(
        [*command, "--site-dir", folder.resolve()],
        cwd=ROOT,
        # The theme advertises its successor on each build.
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return [f"mkdocs build --strict failed:\n{done.stdout}{done.stderr}"]
    found = [(page, LOADED) for page in folder.rglob("*.html")]
    found += [(page, LOADED_BY_CSS) for page in folder.rglob("*.css")]
    return [
        f"site: {page.relative_to(folder)} loads {match[1] or match[2]} from the network"
        for page, pattern in found
        for match in pattern.finditer(page.read_text("utf-8"))
    ]
