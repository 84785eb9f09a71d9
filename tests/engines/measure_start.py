"""How long `naclip segment` takes as a process, with empty caches and then with full ones.

    python -m tests.engines.measure_start

A ViT-B/16 of random weights: what it costs does not depend on what it has learned.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from PIL import Image

from naclip.synthetic import draw

from ..evaluate.measure_sharing import random_b16

RUNS = 5
READY = "import sys; from naclip.pipeline import load; load(sys.argv[1], engine=sys.argv[2])"


def seconds(command: list[str], environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, env=environment, capture_output=True)
    return time.perf_counter() - begin


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, photo = str(random_b16(folder)), str(folder / "photo.jpg")
        Image.fromarray(draw(3, (96, 128), scale=2).image).save(photo)
        for engine in ("torch", "openvino"):
            environment = {**os.environ, "NACLIP_CACHE": str(folder / engine)}
            segment = [sys.executable, "-m", "naclip", "segment", photo, "-m", model]
            segment += ["-c", "cat", "-c", "dog", "--engine", engine, "-o", str(folder / "m.png")]
            first = seconds(segment, environment)
            again = median(seconds(segment, environment) for _ in range(RUNS))
            ready = [sys.executable, "-c", READY, model, engine]
            loaded = median(seconds(ready, environment) for _ in range(RUNS))
            print(f"{engine}: first {first:.2f} s, then {again:.2f} s; ready in {loaded:.2f} s")


if __name__ == "__main__":
    main()
