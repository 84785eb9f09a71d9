"""Tables as Markdown: our number in bold, the paper's in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from naclip.evaluate.datasets import BENCHMARKS
from naclip.evaluate.heuristic import SIGMAS, TAUS

NOT = "-"


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def cell(ours: float | None, printed: float | None) -> str:
    mine = NOT if ours is None else f"**{ours:.1f}**"
    return f"{mine} ({NOT if printed is None else f'{printed:.1f}'})"


def short(name: str) -> str:
    return BENCHMARKS[name].short if name in BENCHMARKS else name


def table(document: Mapping[str, Any]) -> str:
    """A table document of naclip.evaluate.reproduce."""
    parts = [f"# {document['title']}\n", _legend(document)]
    for section in document["models"]:
        model = section["model"]
        if len(document["models"]) > 1:
            parts.append(f"## {model['name']}\n")
        parts.append(_section(section, document["benchmarks"]))
        weights = f"sha256 `{model['sha256'][:16]}`"
        parts.append(f"Model: {model['name']}, {weights}.{_caution(section)}\n")
    skipped = [
        f"- {data}, {image}: {why}"
        for section in document["models"]
        for row in section["rows"][:1]
        for data, found in row["ours"].items()
        for image, why in found["skipped"].items()
    ]
    if skipped:
        parts.append("Skipped images:\n\n" + "\n".join(skipped) + "\n")
    versions = ", ".join(f"{k} {v}" for k, v in document["versions"].items() if v)
    parts.append(f"Made by `naclip reproduce table {document['table']}` with {versions}.\n")
    return "\n".join(parts)


def _section(section: Mapping[str, Any], benchmarks: Sequence[str]) -> str:
    rows = section["rows"]
    extra = [name for row in rows for name in row["ours"] if name not in benchmarks]
    columns = list(dict.fromkeys((*benchmarks, *extra)))
    lines = []
    for row in rows:
        name = f"{row['system']} ({row['venue']})" if row["venue"] else row["system"]
        mious = [
            cell(row["ours"].get(column, {}).get("miou"), row["published"].get(column))
            for column in columns
        ]
        average = cell(row["ours_average"], row["published_average"])
        lines.append([name, _yes(row["fair"]), _yes(row["post"]), *mious, average])
    return grid(["System", "Fair", "Post.", *map(short, columns), "Avg"], lines)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _legend(document: Mapping[str, Any]) -> str:
    return (
        "mIoU in percent: **ours** (the paper's). "
        f"{NOT}: not run here, or not printed there. Fair: training-free and with CLIP alone, as "
        "the paper marks it. Post.: with a refinement of the masks, ours with PAMR. An average is "
        "of all the paper's columns or not given.\n"
        + "".join(f"\nSubset: {text}.\n" for text in document["subsets"])
    )


def _caution(section: Mapping[str, Any]) -> str:
    printed = section["published_for"]
    if printed is None or printed == section["known_as"]:
        return ""
    return f" **The paper's numbers are of {printed}, ours are not.**"


def heuristic(counts: Sequence[Sequence[int]], printed: Sequence[Sequence[int]], title: str) -> str:
    """The appendix's table of patch counts."""
    rows = [
        [str(sigma), *(f"**{n}** ({p})" for n, p in zip(mine, theirs, strict=True))]
        for sigma, mine, theirs in zip(SIGMAS, counts, printed, strict=True)
    ]
    header = ["sigma", *(f"tau = {tau}" for tau in TAUS)]
    return f"# {title}\n\n**Ours** (the paper's), exact.\n\n{grid(header, rows)}"


def refiners(document: Mapping[str, Any]) -> str:
    """A comparison of naclip.evaluate.refiners."""
    header = ["Refiner", "mIoU", "Boundary F", "Seconds an image"]
    rows = [
        [
            row["refiner"],
            f"{row['miou']:.1f}",
            f"{row['boundary_f']:.1f}",
            f"{row['median_seconds']:.3f}",
        ]
        for row in document["rows"]
    ]
    data, model = document["data"], document["model"]
    return (
        f"# {document['title']}\n\n{grid(header, rows)}\n"
        f"{data['images']} images of {data['name']}; model {model['name']}, sha256 "
        f"`{model['sha256'][:16]}`. In percent; boundaries within {document['tolerance']} pixels. "
        "Seconds: the median, of refinement and labels alone.\n\n"
        f"Made by `naclip reproduce refiners` with naclip {document['versions']['naclip']}.\n"
    )
