"""What mkdocs does beside rendering pages: mkdocs.yml names this file.

The README is the first page; notebooks become pages; files of the repository that pages link to
come along as pages of their source; equations become MathML, which browsers draw by themselves.
"""

from __future__ import annotations

import html
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parents[1]))  # mkdocs runs this file by itself

from docs_parts import ROOT, pages

DOCS = ROOT / "docs"
LINK = re.compile(r"(\]\(|<img [^>]*src=\")([^)#\s\"]+)")
EQUATION = re.compile(r"<(div|span) class=\"arithmatex\">\\[\[(](.*?)\\[\])]</\1>", re.S)


def on_files(files: Any, config: Any) -> Any:
    made = {"index.md": (ROOT / "README.md").read_text()}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = page_of_notebook(path)
    for page in pages():
        for target in linked(page):
            if not target.is_relative_to(DOCS):
                made[source_page(target)] = page_of_source(target)
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links out of the docs lead to the pages made of what they name."""
    name = page.file.src_uri
    if name.startswith(("source/", "notebooks/")):
        return markdown
    origin = ROOT / "README.md" if name == "index.md" else DOCS / name

    def local(match: re.Match[str]) -> str:
        target = target_of(origin, match[2])
        if target is None:
            return match[0]
        inside = target.is_relative_to(DOCS)
        uri = target.relative_to(DOCS).as_posix() if inside else source_page(target)
        return match[1] + posixpath.relpath(uri, posixpath.dirname(name) or ".")

    return LINK.sub(local, markdown)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    def mathml(match: re.Match[str]) -> str:
        display = "block" if match[1] == "div" else "inline"
        return convert(html.unescape(match[2]).strip(), display=display)

    return EQUATION.sub(mathml, content)


def target_of(origin: Path, link: str) -> Path | None:
    """The file that a link leads to, or None: another host, or a page made by this hook."""
    if "://" in link:
        return None
    target = Path(os.path.normpath(origin.parent / link))
    return target if target.exists() else None


def linked(page: Path) -> list[Path]:
    targets = [target_of(page, link) for _, link in LINK.findall(page.read_text())]
    return [target for target in targets if target is not None]


def source_page(target: Path) -> str:
    if target.parent.name == "notebooks":
        return f"notebooks/{target.stem}.md"
    if target == ROOT / "README.md":
        return "index.md"
    return f"source/{target.relative_to(ROOT).as_posix()}.md"


def page_of_source(target: Path) -> str:
    """A file as it is; of a folder its README, or its modules one after another."""
    files = [target]
    if target.is_dir():
        readme = target / "README.md"
        files = [readme] if readme.exists() else sorted(target.glob("*.py"))
    title = target.relative_to(ROOT).as_posix()
    parts = [f"---\nsearch:\n  exclude: true\n---\n\n# {title}\n"]
    for file in files:
        language = {".py": "py", ".md": "md", ".toml": "toml"}.get(file.suffix, "text")
        heading = f"## {file.name}\n\n" if len(files) > 1 else ""
        parts.append(f"{heading}~~~~~~{language}\n{file.read_text('utf-8')}\n~~~~~~\n")
    return "\n".join(parts)


def page_of_notebook(path: Path) -> str:
    import nbformat

    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        fence = cell.cell_type == "code"
        parts.append(f"```py\n{cell.source}\n```" if fence else cell.source)
    place = path.relative_to(ROOT).as_posix()
    parts.insert(1, f"*This page is the notebook `{place}`; CI runs it.*")
    return "\n\n".join(parts) + "\n"
