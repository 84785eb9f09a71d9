"""Make the generated parts of the docs, and check all of it.

    scripts/docs            write docs/cli.md, docs/api.md and the pictures
    scripts/docs --check    references are up to date, links lead somewhere, the blocks of README
                            and docs run, the notebooks run, the site builds
    scripts/docs --site DIR build the site (mkdocs) into a folder

There is no network: the hub's cache is filled with small random weights under the names that the
docs use, and photo.jpg and street.jpg are drawn.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from docs_parts import ROOT, pages
from docs_parts.blocks import run_page
from docs_parts.links import broken_links
from docs_parts.notebooks import NOTEBOOKS, run_notebook
from docs_parts.references import API_PAGE, CLI_PAGE, api_reference, cli_reference
from docs_parts.site import build_site
from docs_parts.stage import fill_hub_cache

REFERENCES = {CLI_PAGE: cli_reference, API_PAGE: api_reference}


def write() -> None:
    for page, reference in REFERENCES.items():
        page.write_text(reference())
    subprocess.run([sys.executable, ROOT / "docs/pictures.py"], check=True)


def check() -> int:
    problems = [
        f"{page.relative_to(ROOT)} is out of date: run scripts/docs"
        for page, reference in REFERENCES.items()
        if not page.exists() or page.read_text() != reference()
    ]
    problems += [problem for page in pages() for problem in broken_links(page)]
    passed = skipped = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        home = Path(folder) / "home"
        fill_hub_cache(home / "hub")
        site = pool.submit(build_site, Path(folder) / "site")
        notebooks = [pool.submit(run_notebook, path, home) for path in NOTEBOOKS]
        runs = [pool.submit(run_page, page, home, Path(folder)) for page in pages()]
        for run in runs:
            ran, left_out, failures = run.result()
            passed, skipped = passed + ran - len(failures), skipped + left_out
            problems += failures
        problems += [problem for notebook in notebooks for problem in notebook.result()]
        problems += site.result()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(
        f"docs: {passed} code blocks passed, {skipped} not run, {len(NOTEBOOKS)} notebooks, "
        f"{len(problems)} problems"
    )
    return 1 if problems or not passed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--site", type=Path)
    asked = parser.parse_args()
    if asked.check:
        return check()
    if asked.site:
        problems = build_site(asked.site)
        print("\n".join(problems) or f"the site: {asked.site / 'index.html'}")
        return 1 if problems else 0
    write()
    return 0


if __name__ == "__main__":
    if not shutil.which("bash"):
        sys.exit("bash is needed to run the docs' blocks")
    sys.exit(main())
