"""`naclip demo` as a newcomer runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from PIL import Image


def test_demo_writes_a_page_that_needs_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "page"
    done = subprocess.run(
        [sys.executable, "-m", "naclip", "demo", "--out", str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "naclip segment photo.jpg" in done.stdout
    page = (out / "index.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert sorted(sources) == ["attention.png", "heatmaps.png", "masks.png", "words.png"]
    for name in sources:
        with Image.open(out / name) as picture:
            assert picture.size[0] > 500
            colours = picture.convert("RGB").getcolors(1 << 24)
        assert colours is not None
        assert len(colours) > 20
    shown = {float(number) for number in re.findall(r"<td>(\d\.\d\d)</td>", page)}
    printed = {float(number) for number in re.findall(r"mIoU (\d\.\d\d)", done.stdout)}
    assert shown == printed
    assert max(shown) > 0.4


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "naclip", "demo", "--out", str(taken / "page")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "cannot be made" in done.stderr
