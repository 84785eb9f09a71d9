"""An evaluation on the terminal: classes, means, the paper's number, and what to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from naclip.evaluate.report import difference

WHOLE_NAMES = 20  # letters of a class's name that no column takes away


def percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.2f}"


def signed(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:+.2f}"


def counted(images: int) -> str:
    return f"{images:,} image" + "s" * (images != 1)


def _table(classes: Iterable[str]) -> Table:
    """With a first column of classes, whose names are whole unless they are long."""
    table = Table(box=box.SIMPLE)
    width = min(max(map(len, classes)), WHOLE_NAMES)
    table.add_column("class", overflow="fold", min_width=width)
    return table


def show(document: Mapping[str, Any], console: Console) -> None:
    result, data = document["result"], document["data"]
    analysed = document.get("analysis", {}).get("names", {})
    table = _table(row["class"] for row in result["classes"])
    for column in ("IoU", "accuracy", "pixels", *(f"IoU {variant}" for variant in analysed)):
        table.add_column(column, justify="right", min_width=max(map(len, column.split())))
    for index, row in enumerate(result["classes"]):
        others = [percent(variant["classes"][index]["iou"]) for variant in analysed.values()]
        table.add_row(
            row["class"],
            percent(row["iou"]),
            percent(row["accuracy"]),
            f"{row['pixels']:,}",
            *others,
        )
    means = [percent(variant["miou"]) for variant in analysed.values()]
    table.add_section()
    table.add_row("mean", percent(result["miou"]), percent(result["macc"]), "", *means)
    console.print(table)
    for line in _lines(document):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    whole = data["official_images"]
    of = f"{data['images']:,} of {counted(whole)}" if whole else counted(data["images"])
    console.print(f"{of} of {data['name']}", highlight=False)


def _lines(document: Mapping[str, Any]) -> list[str]:
    result, paper = document["result"], document["published"]
    lines = [
        f"mIoU {percent(result['miou'])}  mAcc {percent(result['macc'])}  "
        f"aAcc {percent(result['aacc'])}"
    ]
    if result["miou_interval"]:
        low, high = map(percent, result["miou_interval"])
        lines.append(f"95% interval of mIoU over images: {low} to {high}")
    if paper:
        apart = "-" if paper["difference"] is None else f"{paper['difference']:+.2f}"
        lines.append(f"paper: {paper['miou_percent']:.1f}, difference {apart}")
        if not paper["same_images"]:
            lines.append("note: the paper's number is of all images, ours of a subset")
    else:
        lines.append("paper: no number for this setting")
    for variant, found in document.get("analysis", {}).get("names", {}).items():
        lost = difference(result["miou"], found["miou"])
        lines.append(f"names: {variant} mIoU {percent(found['miou'])}, difference {signed(lost)}")
    calibrated = document.get("analysis", {}).get("threshold")
    if calibrated:
        lines.append(
            f"threshold: {calibrated['used']:g} used, {calibrated['best']:g} best "
            f"(mIoU {percent(calibrated['best_miou'])}; chosen on one half of the images and "
            f"measured on the other {percent(calibrated['cross_validated_miou'])})"
        )
    lines += [f"skipped: {image}: {why}" for image, why in document["skipped"].items()]
    return lines


def show_comparison(made: Mapping[str, Any], console: Console, top: int) -> None:
    table = _table(row["class"] for row in made["classes"])
    for column in ("IoU A", "IoU B", "B - A"):
        table.add_column(column, justify="right")
    known = [row for row in made["classes"] if row["difference"] is not None]
    for row in sorted(known, key=lambda row: -row["difference"]):
        table.add_row(row["class"], *map(percent, row["iou"]), signed(row["difference"]))
    table.add_section()
    table.add_row("mean", *map(percent, made["miou"]), signed(made["difference"]))
    console.print(table)
    low, high = map(signed, made["interval"])
    lines = [
        f"{counted(made['images'])} of {made['data']}",
        f"95% interval of the difference (paired over images): {low} to {high}",
        f"B is better in {made['share_of_draws_better']:.1%} of the draws",
        *(f"differs: {name}: {a} -> {b}" for name, (a, b) in made["differs"].items()),
        "images that changed most, mIoU of the image:",
        *(f"  {i['image']}: {signed(i['difference'])}" for i in made["by_image"][:top]),
    ]
    if made["left_out"]:
        lines.append(f"left out, in one of the two only: {counted(len(made['left_out']))}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
