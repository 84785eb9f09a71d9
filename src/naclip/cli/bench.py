"""`naclip bench`: time and memory on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for bench.json, bench.md and plots")
    ] = Path("bench"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A small model and small images: a minute or two")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these: floor, raw, refined, refined150, text, names, pixels, flight, large, "
            "accuracy"
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Of each case; they take turns")] = 5,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    plots: Annotated[bool, typer.Option(help="Draw the plots (extra figures)")] = True,
) -> None:
    """Measure speed and memory against a plain program of the same method."""
    from naclip.bench import accuracy, report
    from naclip.bench.run import compare
    from naclip.bench.suites import suites
    from naclip.device import choose_device
    from naclip.errors import SettingsError, no_such

    if plots:
        report.require_plots()
    place = choose_device(device).type  # type: ignore[arg-type]
    chosen = {suite.key: suite for suite in suites(quick, place)}
    for key in only or []:
        if key not in (*chosen, "accuracy"):
            raise SettingsError(no_such("comparison", key, chosen, "naclip bench --help"))
    about, results = report.machine(place), []
    for suite in chosen.values():
        if only and suite.key not in only:
            continue
        results.append((suite, compare(suite.cases, runs)))
        print("\n".join(["", f"### {suite.title}", "", *report.table(*results[-1])]), flush=True)
        report.write(output, results, about)  # what is done stays, should it be interrupted
    if not only or "accuracy" in only:
        rows = accuracy.accuracy(scenes=20 if quick else 300)
        lines = ["", "### What engines do to labels", "", *accuracy.table(rows)]
        print("\n".join(lines))
        report.add(output / "bench.md", lines)
    print(f"\nWritten to {output}")
