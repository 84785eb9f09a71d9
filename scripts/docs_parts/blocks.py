"""Running the code blocks of a page.

Blocks run in order, in one folder of the page's own: ```bash blocks by bash, ```python blocks as
one growing program. A block after `<!-- not run: reason -->` is left out and counted.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

from docs_parts import ROOT
from docs_parts.stage import environment, set_stage

BLOCK = re.compile(r"(<!-- not run: .+? -->\n+)?^```(bash|python)\n(.*?)^```$", re.M | re.S)


def run_page(page: Path, home: Path, folder: Path) -> tuple[int, int, list[str]]:
    """(blocks run, blocks left out, failures)"""
    where = page.relative_to(ROOT)
    blocks = BLOCK.findall(page.read_text())
    chosen = [(language, code) for not_run, language, code in blocks if not not_run]
    if not chosen:
        return 0, len(blocks), []
    own = folder / "-".join(where.with_suffix("").parts)
    set_stage(own)
    failures, program = [], ""
    for language, group in itertools.groupby(chosen, key=lambda block: block[0]):
        for code in _together(language, [code for _, code in group]):
            if language == "bash":
                command = ["bash", "-euo", "pipefail", "-c", code]
            else:  # earlier python blocks of the page run again, so that names carry over
                program += code
                command = [sys.executable, "-c", program]
            done = subprocess.run(
                command,
                cwd=own,
                env=environment(home),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                first = code.strip().splitlines()[0]
                failures.append(f"{where}: block `{first}` failed:\n{done.stdout}{done.stderr}")
    return len(chosen), len(blocks) - len(chosen), failures


def _together(language: str, codes: list[str]) -> list[str]:
    """Python blocks with nothing between them are one run: each start imports torch."""
    return ["".join(codes)] if language == "python" else codes
