"""Where compiled code is kept, and what the user hears of it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from naclip.kernels import compiled
from naclip.kernels.compiled import kernel
from naclip.kernels.simd import exp_below_0, load, store


def place() -> Path | None:
    return compiled.folder.__wrapped__()


def test_compiled_code_moves_to_the_cache_where_the_package_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__pycache__").write_text("a file: no folder can be made here")
    monkeypatch.setattr(compiled, "HERE", tmp_path)
    monkeypatch.setattr(compiled.CONFIG, "CACHE_DIR", "")
    monkeypatch.setenv("NACLIP_CACHE", str(tmp_path / "cache"))
    assert place() is not None
    assert str(place()).startswith(str(tmp_path / "cache" / "numba"))
    monkeypatch.setenv("NACLIP_CACHE", str(tmp_path / "__pycache__"))
    assert place() is None


def test_without_any_place_kernels_compile_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "folder", lambda: None)
    assert kernel(_plus_one)(1) == 2


def _plus_one(x):  # type: ignore[no-untyped-def]
    return x + 1


def test_changed_sources_are_compiled_anew_and_old_ones_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "HERE", tmp_path)
    monkeypatch.setattr(compiled.CONFIG, "CACHE_DIR", "")
    places = []
    for version in range(7):
        (tmp_path / "a.py").write_text(f"VERSION = {version}")
        places.append(place())
        os.utime(places[-1] or "", (version, version))
    assert len(set(places)) == 7
    left = [path for path in (tmp_path / "__pycache__").iterdir() if path.is_dir()]
    assert len(left) <= compiled.VERSIONS_KEPT + 1
    assert places[-1] in left


def test_the_first_compilation_is_announced_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path)
    compiled.announce.__wrapped__()
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "naclip: compiling for this CPU, some 10 seconds, once\n"
    (tmp_path / "kernel.nbi").touch()
    compiled.announce.__wrapped__()
    assert capsys.readouterr().err == ""


def test_pieces_of_work_cover_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, threads, pieces in [(0, 2, 0), (1, 4, 0), (10, 3, 7), (5, 2, 64), (64, 2, 0)]:
        monkeypatch.setattr(compiled, "threads", lambda threads=threads: threads)
        seen: list[int] = []
        compiled.spread(lambda a, b, seen=seen: seen.extend(range(a, b)), count, pieces)
        assert sorted(seen) == list(range(count))


def test_an_error_in_a_piece_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "threads", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        compiled.spread(lambda a, b: 1 // (a - b + 1), 2)


@kernel
def _exp(values, out):  # type: ignore[no-untyped-def]
    for i in range(0, values.size, 16):
        store(out, i, exp_below_0(load(values, i)))


def test_exp_is_within_four_units_in_the_last_place_near_the_largest() -> None:
    values = -np.linspace(0, 100, 160_000, dtype=np.float32)
    ours = np.empty_like(values)
    _exp(values, ours)
    exact = np.exp(values.astype(np.float64))
    near = values > -2
    assert np.abs(ours / exact - 1)[near].max() < 4 * 2**-23
    assert np.abs(ours - exact).max() < 4 * 2**-24  # far ones count for nothing in a sum
    assert ours[0] == 1
