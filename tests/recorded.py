"""The recorded answers of the authors' programs (tests/parity): a missing one is a failure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PARITY = Path(__file__).parent / "parity"
BENCHMARK_FILES = {"cityscapes": "city_scapes"}  # ours: theirs, where the names differ


def recorded_file(name: str) -> Path:
    path = PARITY / name
    assert path.is_file(), f"{path} is missing: copy it from where tests/parity/README.md says"
    return path


def recorded(name: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of an .npz by name."""
    with np.load(recorded_file(name)) as archive:
        return {key: archive[key] for key in archive.files}


def recorded_of(kind: str, benchmark: str, image: str = "") -> dict[str, NDArray[np.generic]]:
    """`recorded_of("e2e", "voc21", "coffee")` -> the arrays of e2e_voc21_coffee.npz."""
    parts = [kind, BENCHMARK_FILES.get(benchmark, benchmark), *([image] if image else [])]
    return recorded("_".join(parts) + ".npz")
