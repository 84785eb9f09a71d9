"""One case in a process of its own: `python -m naclip.bench.worker CASE_AS_JSON`.

Says `ready` when everything is loaded and has run once, then runs once for each line it reads and
answers with a line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from naclip.bench.cases import Case, prepared

STATUS = Path("/proc/self/status")


def memory(device: str) -> tuple[int, int]:
    """(now, at most since `forget_peak`) in bytes; zeros where the system does not say."""
    if device == "cuda":
        return torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    if not STATUS.exists():
        return 0, 0
    fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def forget_peak(device: str) -> None:
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):  # the peak is then of the whole process: never too low
        Path("/proc/self/clear_refs").write_text("5")


def finish(device: str) -> None:
    """A GPU goes on after its calls have returned."""
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    case = Case(**json.loads(sys.argv[1]))
    begin = time.perf_counter()
    answer = sys.stdout
    sys.stdout = sys.stderr
    with torch.inference_mode():
        if case.part == "after":  # compile on something small: memory is counted from here on
            prepared(replace(case, height=64, width=64, names=3))()
        run = prepared(case)
        before, _ = memory(case.device)
        forget_peak(case.device)
        run()  # loads and fills caches
        finish(case.device)
        started = time.perf_counter() - begin
        print(json.dumps({"start": started}), file=answer, flush=True)
        for _ in sys.stdin:
            begin, begin_cpu = time.perf_counter(), time.process_time()
            stages = run()
            finish(case.device)
            seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
            _, peak = memory(case.device)
            said = {
                "seconds": seconds,
                "cpu": cpu,
                "stages": stages,
                "peak": peak,
                "extra": max(0, peak - before),
            }
            print(json.dumps(said), file=answer, flush=True)


if __name__ == "__main__":
    main()
