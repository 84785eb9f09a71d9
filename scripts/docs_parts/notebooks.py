"""The notebooks: without outputs in the repository, and run from top to bottom."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from docs_parts import ROOT
from docs_parts.stage import environment, set_stage

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def run_notebook(path: Path, home: Path) -> list[str]:
    import nbformat

    notebook: Any = nbformat.read(path, as_version=4)
    where = path.relative_to(ROOT)
    if any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells):
        return [f"{where}: has outputs: clear them before you commit"]
    with tempfile.TemporaryDirectory() as folder:
        return _executed(notebook, str(where), Path(folder) / "work", home)


def _executed(notebook: Any, where: str, folder: Path, home: Path) -> list[str]:
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    set_stage(folder)
    client = NotebookClient(
        notebook,
        timeout=300,
        startup_timeout=180,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        client.execute(env=environment(home) | {"IPYTHONDIR": str(home / "ipython")})
    except CellExecutionError as error:
        return [f"{where}: {str(error)[-3000:]}"]
    return []
