"""What was measured -> JSON, Markdown and plots."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from naclip.bench.cases import GEMM
from naclip.bench.run import Result
from naclip.bench.suites import Suite
from naclip.errors import MissingExtraError
from naclip.files import atomic

Results = Sequence[tuple[Suite, Mapping[str, Result]]]
PACKAGES = ("naclip", "torch", "numpy", "numba", "openvino")


def machine(device: str = "cpu") -> dict[str, Any]:
    import torch

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        cpu = next((ln.split(":")[1].strip() for ln in lines if ln.startswith("model name")), cpu)
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if device == "cuda":
        cpu = f"{torch.cuda.get_device_name()} beside {cpu}"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": cpu,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "load": load,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def write(folder: Path, results: Results, about: Mapping[str, Any]) -> list[Path]:
    """The report's files; plots only where matplotlib is there."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "key": suite.key,
            "title": suite.title,
            "results": {
                name: asdict(result) | {"median": _number(result.median)}
                for name, result in cases.items()
            },
        }
        for suite, cases in results
    ]
    _save(folder / "bench.json", json.dumps({"machine": about, "suites": rows}, indent=1))
    _save(folder / "bench.md", markdown(results, about))
    return [folder / "bench.json", folder / "bench.md", *_plots(folder, results)]


def add(path: Path, lines: Sequence[str]) -> None:
    before = path.read_text() if path.exists() else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    _save(path, before + "\n".join(lines))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _save(path: Path, text: str) -> None:
    with atomic(path) as file:
        file.write((text + "\n").encode())


def markdown(results: Results, about: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    load = "" if about["load"] is None else f", load {about['load']:.1f} when it began"
    lines = [
        f"{about['cpu']}, {about['threads']} threads, {about['instructions']}{load}; "
        f"{about['system']}; Python {about['python']}, {versions}; {about['date']}.",
    ]
    for suite, cases in results:
        lines += ["", f"### {suite.title}", "", *table(suite, cases)]
    return "\n".join(lines)


def table(suite: Suite, cases: Mapping[str, Result]) -> list[str]:
    lines = [
        "| | median | ratio | CPU time | ratio | runs | extra memory | peak of process |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    first = next(iter(cases.values()))
    for name, result in cases.items():
        if result.skipped:
            lines.append(f"| {name} | not run: {result.skipped} | | | | | | |")
            continue
        rate = f" ({10 * 2 * math.prod(GEMM) / result.median / 1e9:.0f} GFLOP/s)"
        base = _plain_beside(name, cases) if suite.along else first
        rate = rate if suite.key == "floor" else ""
        cpu = statistics.median(result.cpu)
        lines.append(
            f"| {name} | {seconds(result.median)}{rate} | {_ratio(base, result, 'seconds')} "
            f"| {seconds(cpu)} | {_ratio(base, result, 'cpu')} | {len(result.seconds)} "
            f"| {result.extra / 1e6:.0f} MB | {result.peak / 1e6:.0f} MB |"
        )
    return lines


def _ratio(base: Result | None, result: Result, what: str) -> str:
    """How many times longer the case takes that this one is compared with."""
    if base is None or not base.seconds:
        return ""
    medians = [statistics.median(getattr(each, what)) for each in (base, result)]
    return f"{medians[0] / medians[1]:.2f}x"


def _plain_beside(name: str, cases: Mapping[str, Result]) -> Result | None:
    """The plain program at the same point of a sweep, unless this does more than it does."""
    program, _, point = name.partition(",")
    return cases.get(f"plain,{point}") if program != "ours refined" else None


def seconds(value: float) -> str:
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def _plots(folder: Path, results: Results) -> list[Path]:
    try:
        import matplotlib as mpl
    except ImportError:
        return []
    mpl.use("Agg")
    paths = []
    for suite, cases in results:
        if suite.along:
            paths.append(_sweep(folder / f"{suite.key}.png", suite, cases))
    staged = {
        f"{name}{', refined' if suite.key == 'refined' else ''}": result
        for suite, cases in results
        if suite.key in ("raw", "refined")
        for name, result in cases.items()
        if result.stages
    }
    return [*paths, _stages(folder / "stages.png", staged)] if staged else paths


def require_plots() -> None:
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "plots need matplotlib: pip install 'naclip[figures]', or use --no-plots"
        ) from None


def _sweep(path: Path, suite: Suite, cases: Mapping[str, Result]) -> Path:
    from matplotlib import pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    lines: dict[str, list[Result]] = {}
    for name, result in cases.items():
        if result.seconds:
            lines.setdefault(name.partition(",")[0] if "," in name else "ours", []).append(result)
    for label, points in lines.items():
        x = [_position(suite.along, point) for point in points]
        time.loglog(x, [point.median for point in points], "o-", label=label)
        memory.loglog(x, [max(point.extra / 1e6, 1) for point in points], "o-", label=label)
    for axes, what in ((time, "seconds"), (memory, "extra memory, MB")):
        axes.set_xlabel(suite.along)
        axes.set_ylabel(what)
        axes.grid(True, alpha=0.3)
    time.legend()
    figure.suptitle(suite.title)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _position(along: str, result: Result) -> float:
    case = result.case
    return case.height * case.width / 1e6 if along == "megapixels" else getattr(case, along)


def _stages(path: Path, cases: Mapping[str, Result]) -> Path:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.5 + 0.4 * len(cases)), constrained_layout=True)
    names = list(dict.fromkeys(stage for result in cases.values() for stage in result.stages))
    left = [0.0] * len(cases)
    for stage in names:
        width = [result.stages.get(stage, 0.0) for result in cases.values()]
        axes.barh(list(cases), width, left=left, label=stage)
        left = [a + b for a, b in zip(left, width, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("seconds by stage")
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
