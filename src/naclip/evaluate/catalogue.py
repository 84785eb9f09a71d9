"""The table of data sets that `naclip datasets` prints."""

from __future__ import annotations

from typing import Any

from naclip import vocabulary
from naclip.errors import SettingsError, no_such
from naclip.evaluate.datasets import BENCHMARKS, FAMILIES

FOLDER_TREE = """DIR/
  classes.txt                 a class a line: "sofa, couch"; or classes.toml, classes.json
  images/NAME.jpg ...
  masks/NAME.png ...          the class's number from 0 in the file's order, 255 void
                              (other numbers or colours: [values] in classes.toml)
  annotations.json            instead of masks/ (COCO instances) or with it (COCO panoptic)"""

OWN: dict[str, dict[str, Any]] = {
    "folder": {
        "dataset": "folder",
        "about": "your own images and masks",
        "classes": "your own",
        "images": "your own",
        "size": "nothing to download",
        "licence": "yours",
        "page": "docs/evaluation.md",
        "tree": FOLDER_TREE,
    },
    "synthetic": {
        "dataset": "synthetic",
        "about": "drawn scenes for the tiny model",
        "classes": 25,
        "images": 300,
        "size": "nothing to download",
        "licence": "of this program",
        "page": "docs/tiny-model.md",
        "tree": "drawn when it is read: leave --data out",
    },
}


def entry(name: str) -> dict[str, Any]:
    """All that is known of one data set."""
    if name in OWN:
        return OWN[name]
    if name not in BENCHMARKS:
        raise SettingsError(no_such("data set", name, [*BENCHMARKS, *OWN], "naclip datasets"))
    benchmark = BENCHMARKS[name]
    family = FAMILIES[benchmark.family]
    words = vocabulary.load(name)
    return {
        "dataset": name,
        "about": f"{family.title}; {words.title}",
        "classes": len(words.classes),
        "images": family.images,
        "size": family.size,
        "licence": family.licence,
        "page": family.page,
        "tree": family.tree,
    }


def entries() -> list[dict[str, Any]]:
    rows = [entry(name) for name in (*BENCHMARKS, *OWN)]
    return [{key: value for key, value in row.items() if key != "tree"} for row in rows]
