"""The shape of the code: what may import what, how long it may be, and what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import naclip

SOURCE = Path(naclip.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
# What stands on the core; the core knows nothing of them.
OUTER = {"evaluate", "bulk", "batch", "serve", "export", "onnx", "cli", "demo", "bench", "__main__"}
MAX_MODULE, MAX_FUNCTION = 300, 50


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[str]:
    """Every module named by an import, wherever it stands, with relative ones made absolute."""
    package = module_of(path).split(".")
    package = package if path.name == "__init__.py" else package[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str:
    """`naclip.serve.app` -> `serve`"""
    return [*module.split("."), ""][1] if module.startswith("naclip") else ""


# The package's own __init__ is the front of it all: it names and imports nothing until asked.
FRONT = SOURCE / "__init__.py"
CORE = [path for path in FILES if path != FRONT and part_of(module_of(path)) not in OUTER]


def test_there_is_a_core_to_look_at() -> None:
    assert {"pipeline.py", "settings.py", "vision.py"} <= {path.name for path in CORE}


# `result.to_coco()` is where users look for it; the import waits until it is called.
EXEMPT = {("naclip.results", "naclip.export.of_result")}


@pytest.mark.parametrize("path", CORE, ids=module_of)
def test_the_core_imports_nothing_that_stands_on_it(path: Path) -> None:
    outer = {name for name in imports_of(path) if part_of(name) in OUTER}
    outer = {name for name in outer if (module_of(path), name) not in EXEMPT}
    assert not outer, f"{module_of(path)} imports {outer}"


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_modules_stay_under_300_lines_and_functions_under_50(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < MAX_MODULE
    assert not {name: lines for name, lines in bodies_of(text) if lines >= MAX_FUNCTION}


def bodies_of(text: str) -> Iterator[tuple[str, int]]:
    """Functions and the lines of their bodies: options of a command are declared above those."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.body[0].lineno + 1


def test_importing_naclip_does_not_import_torch() -> None:
    program = (
        "import sys, naclip; print([m for m in ('torch', 'numpy', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_public_names_are_there_and_no_others() -> None:
    for name in naclip.__all__:
        assert getattr(naclip, name) is not None
    assert set(naclip.__all__) <= set(dir(naclip))
    with pytest.raises(AttributeError, match="module 'naclip' has no attribute 'lod'"):
        naclip.lod  # noqa: B018


def test_every_error_is_in_the_tree_that_its_module_draws() -> None:
    from naclip import errors

    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.NaclipError)
    ]
    drawn = errors.__doc__ or ""
    for kind in kinds:
        assert kind.__name__ in drawn
        assert kind.exit_code == (2 if issubclass(kind, errors.UsageError) else 1)


def test_a_first_image_does_not_wait_for_torchs_compiler() -> None:
    """Its import takes longer than loading ViT-B/16; a careless operation on `meta` brings it."""
    program = (
        "import sys, numpy as np, naclip;"
        "segment = naclip.load('tiny', engine='torch');"
        "segment(np.zeros((96, 128, 3), np.uint8), ['water', 'sand']);"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
