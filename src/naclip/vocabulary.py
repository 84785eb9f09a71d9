"""The words: classes, the names (synonyms) of each, and background.

A class is what a label means; its names are what CLIP is asked for. On the command line
`sofa=couch,settee` is one class with three names. A file of words is a line a class, the first name
being the class's:

    # comment
    cat
    sofa, couch, settee

or TOML (JSON alike), where a class may be called otherwise than its names:

    background = ["wall", "sky"]      # optional: names of label 0
    [classes]
    boat = ["ship"]
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from naclip.errors import VocabularyError, no_such
from naclip.files import is_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BACKGROUND = "background"
BENCHMARKS = (
    "voc21",
    "voc20",
    "context60",
    "context59",
    "coco_object",
    "coco_stuff",
    "cityscapes",
    "ade20k",
)
MAX_CLASSES = 10_000

Words: TypeAlias = "Vocabulary | Sequence[str] | Mapping[str, Sequence[str]]"


@dataclass(frozen=True)
class Vocabulary:
    classes: tuple[str, ...]  # the label is the index
    names: tuple[tuple[str, ...], ...]  # of each class; only a background may have none
    has_background: bool = False  # label 0 is background
    title: str = ""
    repeated: frozenset[str] = frozenset()  # names that may stand in two classes

    def __post_init__(self) -> None:
        if not self.classes or not any(self.names):
            raise VocabularyError("no classes: name at least one, e.g. -c cat -c sofa=couch,settee")
        if len(self.classes) > MAX_CLASSES:
            raise VocabularyError(f"{len(self.classes):,} classes: the limit is {MAX_CLASSES:,}")
        _check_classes(self.classes)
        owners: dict[str, str] = {}
        for label, (title, names) in enumerate(zip(self.classes, self.names, strict=True)):
            if not names and not (label == 0 and self.has_background):
                raise VocabularyError(f"class {title!r} has no names")
            for name in names:
                _check_name(name, title)
                key = folded(name)
                if key in owners and key not in self.repeated:
                    raise VocabularyError(_repeated(name, owners[key], title))
                owners[key] = title

    @property
    def prompts(self) -> tuple[str, ...]:
        """All names in label order: what CLIP's text tower reads."""
        return tuple(name for names in self.names for name in names)

    @property
    def class_of(self) -> tuple[int, ...]:
        """The label of each prompt."""
        return tuple(label for label, names in enumerate(self.names) for _ in names)

    def with_background(self, names: Sequence[str] = ()) -> Vocabulary:
        """The same with a background of these names as label 0; no names: a threshold finds it."""
        if self.has_background:
            raise VocabularyError(
                f"the vocabulary already has a background ({', '.join(self.names[0][:3])}...): "
                "leave --background out"
            )
        if BACKGROUND in map(folded, self.classes):
            raise VocabularyError(
                f"a class is called {BACKGROUND!r}, and so is label 0 where --background or a "
                "threshold is used: leave the class out, and give its names to --background"
            )
        return replace(
            self,
            classes=(BACKGROUND, *self.classes),
            names=(tuple(_texts(names, "background")), *self.names),
            has_background=True,
        )


def folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _check_name(name: str, title: str) -> None:
    if not name.strip():
        raise VocabularyError(f"class {title!r} has an empty name: remove it or the extra comma")
    if any(unicodedata.category(char) == "Cc" for char in name):
        raise VocabularyError(f"name {name!r} has control characters")


def _check_classes(classes: Sequence[str]) -> None:
    seen: set[str] = set()
    for title in classes:
        if not title.strip():
            raise VocabularyError("a class has an empty name: remove it or the extra comma")
        if folded(title) in seen:
            raise VocabularyError(f"class {title!r} is given twice: merge the two")
        seen.add(folded(title))


def _repeated(name: str, owner: str, title: str) -> str:
    if owner == title:
        return f"name {name!r} is given twice in class {title!r}"
    return f"name {name!r} is in two classes, {owner!r} and {title!r}: a pixel cannot be both"


def _tidy(names: Iterable[str]) -> list[str]:
    return [" ".join(unicodedata.normalize("NFC", name).split()) for name in names]


def _texts(value: Any, what: str) -> list[str]:
    """A list of texts, tidied; a bare text is a list of letters to Python and never meant."""
    if not _is_list_of_texts(value):
        raise VocabularyError(f"{what}: expected a list of texts, got {value!r:.60}")
    return _tidy(value)


def parse_class(text: str) -> tuple[str, tuple[str, ...]]:
    """`sofa=couch,settee` or `sofa, couch, settee` -> ("sofa", ("sofa", "couch", "settee"))."""
    head, equals, tail = text.partition("=")
    names = _tidy([head, *tail.split(",")] if equals else text.split(","))
    return names[0], tuple(names)


def parse(classes: Sequence[str]) -> Vocabulary:
    """Words as a user gives them, one string a class."""
    if isinstance(classes, str):
        raise VocabularyError(f'expected a list of classes, got one text: use ["{classes}"]')
    pairs = [parse_class(text) for text in _texts(list(classes), "classes")]
    return Vocabulary(tuple(title for title, _ in pairs), tuple(names for _, names in pairs))


def choose(classes: Sequence[str], vocabulary: str | None) -> Vocabulary:
    """Words on the command line: classes one by one, or a vocabulary, but not both."""
    if classes and vocabulary:
        raise VocabularyError(f"classes and the vocabulary {vocabulary!r} are given: choose one")
    return load(vocabulary) if vocabulary else parse(classes)


def complete(words: Words, background: bool | Sequence[str] | None, threshold: float) -> Vocabulary:
    """Words as a call gives them -> a vocabulary with the background that the call implies."""
    if isinstance(words, Mapping):
        words = _from_table({"classes": words})
    found = words if isinstance(words, Vocabulary) else parse(words)
    if background is True:  # of the usual names, those that are not asked for as classes
        taken = {folded(name) for name in found.prompts}
        background = [name for name in voc21_background() if folded(name) not in taken]
    if background:
        found = found.with_background(background)
    elif threshold > 0 and not found.has_background:
        found = found.with_background()
    if len(found.prompts) == 1:
        raise VocabularyError(
            f"only one name, {found.prompts[0]!r}: every pixel would get it; add classes, or a "
            "background (--background) to tell it from"
        )
    return found


def load(name_or_path: str | Path) -> Vocabulary:
    """A benchmark's vocabulary by name, or a user's file."""
    if str(name_or_path) in BENCHMARKS:
        text = files("naclip").joinpath(f"data/vocabularies/{name_or_path}.toml").read_text("utf-8")
        return _from_table(tomllib.loads(text))
    path = Path(name_or_path)
    if not is_file(path):
        raise VocabularyError(
            no_such("vocabulary or file", str(name_or_path), BENCHMARKS, "naclip vocabularies")
        )
    return _read_file(path)


def _read_file(path: Path) -> Vocabulary:
    try:
        text = path.read_text("utf-8-sig")
        if path.suffix == ".toml":
            return _from_table(tomllib.loads(text))
        if path.suffix == ".json":
            return _from_table(json.loads(text, object_pairs_hook=_once))
        lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]
        return parse(lines)
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from None
    except (ValueError, RecursionError, OSError) as error:  # of TOML, JSON and UTF-8
        raise VocabularyError(f"{path}: cannot be read as a vocabulary ({error})") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ; JSON itself would keep the last of two."""
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        raise VocabularyError(f"{next(k for k in keys if keys.count(k) > 1)!r} is given twice")
    return table


def _from_table(table: Any) -> Vocabulary:
    table = table if isinstance(table, Mapping) else {"classes": table}
    about = table if "classes" in table else {}
    classes = table.get("classes", table)
    if isinstance(classes, list):  # JSON: ["cat", "sofa=couch"]
        pairs = [parse_class(text) for text in _texts(classes, "classes")]
    elif isinstance(classes, Mapping):
        pairs = _pairs(classes)
    else:
        raise VocabularyError('expected a table like [classes] cat = ["cat", "kitten"]')
    vocabulary = Vocabulary(
        tuple(title for title, _ in pairs),
        tuple(names for _, names in pairs),
        title=str(about.get("title", "")),
        repeated=frozenset(map(folded, _texts(about.get("repeated", []), "repeated"))),
    )
    background = about.get("background")
    return vocabulary if background is None else vocabulary.with_background(background)


def _pairs(table: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    """(class, its names) as a table or a dict gives them."""
    return [
        (_tidy([str(title)])[0], tuple(_texts(names, f"class {title!r}")))
        for title, names in table.items()
    ]


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def voc21_background() -> tuple[str, ...]:
    """The 26 background names of the VOC21 benchmark: what --background alone means."""
    return load("voc21").names[0]


def templates(name_or_path: str | Path = "imagenet80") -> tuple[str, ...]:
    """Prompt templates: CLIP's 80 by default, "plain" for the name alone, or a file of lines."""
    if str(name_or_path) == "plain":
        return ("{}",)
    if str(name_or_path) == "imagenet80":
        text = files("naclip").joinpath("data/templates.txt").read_text("utf-8")
    else:
        text = _read_templates(Path(name_or_path))
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]
    return checked_templates(lines, str(name_or_path))


def _read_templates(path: Path) -> str:
    if not is_file(path):
        known = ("imagenet80", "plain")
        raise VocabularyError(no_such("templates", str(path), known, "docs/how-it-works.md"))
    try:
        return path.read_text("utf-8-sig")
    except (ValueError, OSError) as error:
        raise VocabularyError(f"{path}: cannot be read as templates ({error})") from None


def checked_templates(lines: Sequence[str], origin: str = "templates") -> tuple[str, ...]:
    """At least one, and each with a place for the name."""
    if not lines or not _is_list_of_texts(lines):
        raise VocabularyError(f"{origin}: expected a list of templates, got {lines!r:.60}")
    bad = next((line for line in lines if "{}" not in line), None)
    if bad is not None:
        raise VocabularyError(f"{origin}: each template must contain {{}}, got {bad!r:.60}")
    return tuple(lines)
