"""Workers take turns: every case of a comparison runs once before any of them runs again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import IO, Any

from naclip.bench.cases import Case
from naclip.errors import FailureError

TUNED = (
    "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296"
    ":glibc.malloc.top_pad=268435456"
)


@dataclass
class Result:
    case: Case
    start: float = 0.0  # seconds until the first result, Python's own start not counted
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # of all threads; a busy machine adds less
    stages: dict[str, float] = field(default_factory=dict)
    peak: int = 0  # bytes of the whole process
    extra: int = 0  # bytes above what the loaded process held
    skipped: str = ""

    @property
    def median(self) -> float:
        return median(self.seconds) if self.seconds else float("nan")


def compare(cases: Mapping[str, Case], runs: int) -> dict[str, Result]:
    """Interleaved; a case that would not fit the memory is skipped and says so."""
    results = {name: Result(case, skipped=_too_large(case)) for name, case in cases.items()}
    able = {name: result for name, result in results.items() if not result.skipped}
    workers: dict[str, _Worker] = {}
    try:
        for name, result in able.items():
            workers[name] = _Worker(result.case)
            result.start = workers[name].ask("")["start"]
        for _ in range(runs):
            for name, result in able.items():
                said = workers[name].ask("run\n")
                result.seconds.append(said["seconds"])
                result.cpu.append(said["cpu"])
                result.stages = said["stages"]
                result.peak, result.extra = said["peak"], said["extra"]
    finally:
        for worker in workers.values():
            worker.stop()
    return results


class _Worker:
    def __init__(self, case: Case) -> None:
        environment = os.environ | ({"GLIBC_TUNABLES": TUNED} if case.tuned else {})
        command = [sys.executable, "-m", "naclip.bench.worker", json.dumps(asdict(case))]
        self.case = case
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, order: str) -> dict[str, Any]:
        stdin, stdout = _pipes(self.process)
        stdin.write(order)
        stdin.flush()
        line = stdout.readline()
        if not line:
            code = self.process.wait()
            raise FailureError(f"bench: a worker ended with {code}: {self.case}")
        return dict(json.loads(line))

    def stop(self) -> None:
        _pipes(self.process)[0].close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def plain_bytes(case: Case) -> int:
    """What the plain program holds at once at the original size: maps of all names."""
    maps = case.names * case.height * case.width * 4
    return maps * (2 * 16 + 2 if case.refine else 4)


def _too_large(case: Case) -> str:
    if case.path != "plain" or case.part not in ("image", "after"):
        return ""
    needed, free = plain_bytes(case), available_bytes(case.device)
    if needed < 0.7 * free:
        return ""
    return f"needs {needed / 1e9:.0f} GB, {free / 1e9:.0f} GB are free"


def available_bytes(device: str) -> int:
    if device == "cuda":
        import torch

        return torch.cuda.mem_get_info()[0]
    if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 8 << 30
