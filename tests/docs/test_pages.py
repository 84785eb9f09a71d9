"""What pages say about the program, against the program."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import naclip

ROOT = Path(__file__).parents[2]
SOURCE = Path(naclip.__file__).parent
QUOTED = re.compile(r"^## `(.+)`$", re.M)


def texts_of_the_program() -> str:
    """Every string of the source, with a hole where a value is put in."""
    texts = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


def test_messages_that_troubleshooting_explains_are_in_the_source() -> None:
    page = (ROOT / "docs/how-to/troubleshooting.md").read_text("utf-8")
    messages = QUOTED.findall(page)
    program = texts_of_the_program()
    assert len(messages) > 20
    gone = [
        message
        for message in messages
        for part in message.split("…")
        if part.strip(" ,:") and part.strip() not in program
    ]
    assert not gone
