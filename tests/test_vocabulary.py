"""Words from every door, and what unusable ones say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naclip import vocabulary
from naclip.errors import VocabularyError
from naclip.vocabulary import BENCHMARKS, Vocabulary, complete, load, parse, templates

SIZES = {  # classes, names: DESIGN.md, "Vocabularies"
    "voc21": (21, 56),
    "voc20": (20, 30),
    "context60": (60, 60),
    "context59": (59, 59),
    "coco_object": (81, 113),
    "coco_stuff": (171, 171),
    "cityscapes": (19, 19),
    "ade20k": (150, 150),
}
WORD = st.text("abcdefghijklmnop猫éß", min_size=1, max_size=8)
NAMES = st.lists(WORD, min_size=1, max_size=4, unique_by=vocabulary.folded)


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(VocabularyError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    return text


@st.composite
def class_lists(draw: st.DrawFn) -> list[list[str]]:
    """Names of a few classes, all different; the first is the class's."""
    count = draw(st.integers(1, 5))
    words = draw(st.lists(WORD, min_size=count, max_size=12, unique_by=vocabulary.folded))
    lists: list[list[str]] = [[word] for word in words[:count]]
    for index, word in enumerate(words[count:]):
        lists[index % count].append(word)
    return lists


@given(class_lists())
def test_words_survive_every_way_of_writing_them(lists: list[list[str]]) -> None:
    expected = (tuple(names[0] for names in lists), tuple(map(tuple, lists)))
    with_equals = ["=".join((names[0], ",".join(names[1:]))) for names in lists if names[1:]]
    if len(with_equals) == len(lists):
        found = parse(with_equals)
        assert (found.classes, found.names) == expected
    for separator in (",", " , ", ",\t"):
        found = parse([separator.join(names) for names in lists])
        assert (found.classes, found.names) == expected
    assert found.prompts == tuple(name for names in lists for name in names)
    assert found.class_of == tuple(i for i, names in enumerate(lists) for _ in names)


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_files_of_lines_toml_and_json_say_the_same(tmp_path: Path, start: str, end: str) -> None:
    texts = {
        "words.txt": ["# my words", "", "cat", "  sofa ,couch, settee  ", "crème brûlée"],
        "words": ["cat", "sofa=couch,settee", "crème brûlée"],
        "words.toml": [
            "[classes]",
            'cat = ["cat"]',
            'sofa = ["sofa", "couch", "settee"]',
            '"crème brûlée" = ["crème brûlée"]',
        ],
        "words.json": [
            '{"classes": {"cat": ["cat"], "sofa": ["sofa", "couch", "settee"],',
            '"crème brûlée": ["crème brûlée"]}}',
        ],
        "flat.json": [
            '{"cat": ["cat"], "sofa": ["sofa", "couch", "settee"],',
            '"crème brûlée": ["crème brûlée"]}',
        ],
        "list.json": ['["cat", "sofa=couch,settee", "crème brûlée"]'],
        "listed.json": ['{"classes": ["cat", "sofa, couch, settee", "crème brûlée"]}'],
    }
    for name, lines in texts.items():
        path = tmp_path / name
        path.write_bytes((start + end.join(lines)).encode())
        found = load(path)
        assert found.classes == ("cat", "sofa", "crème brûlée"), name
        assert found.names == (("cat",), ("sofa", "couch", "settee"), ("crème brûlée",)), name


def test_a_class_may_be_called_otherwise_than_its_names(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text('title = "Sea"\nbackground = ["wall", "sky"]\n[classes]\nboat = ["ship"]\n')
    found = load(path)
    assert found.title == "Sea"
    assert found.classes == ("background", "boat")
    assert found.prompts == ("wall", "sky", "ship")
    assert found.class_of == (0, 0, 1)
    assert found.has_background


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmarks_have_the_papers_counts(name: str) -> None:
    found = load(name)
    assert (len(found.classes), len(found.prompts)) == SIZES[name]
    assert found.has_background == (name in ("voc21", "context60", "coco_object"))
    assert found.title


def test_the_default_background_is_voc21s_26_names() -> None:
    assert len(vocabulary.voc21_background()) == 26


UNUSABLE = [
    ([], "no classes: name at least one, e.g. -c cat -c sofa=couch,settee"),
    ([""], "a class has an empty name: remove it or the extra comma"),
    (["cat", "  "], "a class has an empty name: remove it or the extra comma"),
    (["cat,"], "class 'cat' has an empty name: remove it or the extra comma"),
    (["sofa=couch,,settee"], "class 'sofa' has an empty name: remove it or the extra comma"),
    (["cat", "dog", "cat"], "class 'cat' is given twice: merge the two"),
    (["cat", "CAT"], "class 'CAT' is given twice: merge the two"),
    (["ﬁre", "fire"], "class 'fire' is given twice: merge the two"),
    (["cafe\u0301", "café"], "class 'café' is given twice: merge the two"),
    (["cat=cat"], "name 'cat' is given twice in class 'cat'"),
    (
        ["sofa=couch", "bench=couch"],
        "name 'couch' is in two classes, 'sofa' and 'bench': a pixel cannot be both",
    ),
    (["ca\0t"], "name 'ca\\x00t' has control characters"),
    ("cat", 'expected a list of classes, got one text: use ["cat"]'),
    ([1, 2], "classes: expected a list of texts, got [1, 2]"),
    ([["cat"]], "classes: expected a list of texts, got [['cat']]"),
]


@pytest.mark.parametrize(("words", "says"), UNUSABLE, ids=[repr(w) for w, _ in UNUSABLE])
def test_unusable_words_say_which_and_what_to_do(words: Any, says: str) -> None:
    assert refusal(parse, words) == says


UNUSABLE_FILES = [
    ("x.txt", b"", "no classes"),
    ("x.txt", b"# only a comment\n", "no classes"),
    ("x.txt", b"\xff\xfe\x00c", "cannot be read as a vocabulary ('utf-8' codec"),
    ("x.toml", b"[classes\n", "cannot be read as a vocabulary ("),
    ("x.toml", b"[classes]\ncat = 'cat'\n", "class 'cat': expected a list of texts, got 'cat'"),
    ("x.toml", b"[classes]\ncat = []\ndog = ['dog']\n", "class 'cat' has no names"),
    ("x.toml", b"background = 'wall'\n[classes]\ncat = ['cat']\n", "background: expected a list"),
    ("x.toml", b"background = true\n[classes]\ncat = ['cat']\n", "background: expected a list"),
    ("x.toml", b"repeated = 5\n[classes]\ncat = ['cat']\n", "repeated: expected a list of texts"),
    ("x.toml", b"", "no classes"),
    ("x.json", b"{", "cannot be read as a vocabulary ("),
    ("x.json", b"5", "expected a table like [classes] cat"),
    ("x.json", b"null", "expected a table like [classes] cat"),
    ("x.json", b'["cat", "cat"]', "class 'cat' is given twice: merge the two"),
    ("x.json", b'["cat", null]', "classes: expected a list of texts, got ['cat', None]"),
    ("x.json", b'{"cat": ["a"], "cat": ["b"]}', "'cat' is given twice"),
    ("x.json", b'{"cat": [1]}', "class 'cat': expected a list of texts, got [1]"),
    ("x.json", b"[" * 100_000, "cannot be read as a vocabulary ("),
    ("x.json", b"1" * 10_000, "cannot be read as a vocabulary ("),
]


@pytest.mark.parametrize(("name", "content", "says"), UNUSABLE_FILES)
def test_an_unusable_file_is_named(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert refusal(load, path).startswith(f"{path}: {says}")


@given(st.binary(max_size=60), st.sampled_from(["txt", "toml", "json"]))
def test_any_bytes_are_words_or_an_error(content: bytes, suffix: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"words.{suffix}"
        path.write_bytes(content)
        try:
            found = load(path)
        except VocabularyError:
            return
        assert found.prompts


def test_a_vocabulary_that_is_not_there_suggests() -> None:
    says = "no vocabulary or file 'voc12'; did you mean 'voc21'? (see naclip vocabularies)"
    assert refusal(load, "voc12") == says
    assert refusal(load, "x" * 5000).startswith("no vocabulary or file")


def test_classes_from_a_dict() -> None:
    found = complete({"cat": ["kitten", "cat"], "dog": ("dog",)}, None, 0)
    assert (found.classes, found.prompts) == (("cat", "dog"), ("kitten", "cat", "dog"))
    says = "class 'sofa': expected a list of texts, got 'couch'"
    assert refusal(complete, {"sofa": "couch", "cat": ["cat"]}, None, 0) == says


def test_background_words_become_label_0() -> None:
    found = complete(["cat", "dog"], ["wall", "sky"], 0)
    assert found.classes == ("background", "cat", "dog")
    assert found.names == (("wall", "sky"), ("cat",), ("dog",))
    assert found.has_background
    assert complete(["cat"], True, 0).names[0] == vocabulary.voc21_background()


def test_the_usual_background_leaves_out_what_is_asked_for() -> None:
    found = complete(["road", "car", "hill=Mountain"], True, 0)
    assert set(vocabulary.voc21_background()) - set(found.names[0]) == {"road", "mountain", "hill"}


def test_a_threshold_alone_makes_a_background_without_names() -> None:
    found = complete(["cat", "dog"], None, 0.1)
    assert (found.classes, found.names[0]) == (("background", "cat", "dog"), ())
    assert complete(load("voc21"), None, 0.1) == load("voc21")
    assert complete(["cat", "dog"], None, 0.0).classes == ("cat", "dog")


def test_impossible_backgrounds_say_what_to_do() -> None:
    assert "background: expected a list of texts, got 'wall,sky'" in refusal(
        complete, ["cat"], "wall,sky", 0
    )
    assert "already has a background (sky, wall, tree...): leave --background out" in refusal(
        complete, load("voc21"), ["wall"], 0
    )
    assert "name 'wall' is in two classes, 'background' and 'wall'" in refusal(
        complete, ["cat", "wall"], ["wall"], 0
    )
    assert "a class is called 'background', and so is label 0" in refusal(
        complete, ["Background", "cat"], None, 0.1
    )


def test_one_name_alone_is_refused() -> None:
    says = "only one name, 'cat': every pixel would get it; add classes, or a background"
    assert refusal(complete, ["cat"], None, 0).startswith(says)
    assert refusal(complete, ["cat"], None, 0.5).startswith(says)
    assert complete(["cat=kitten"], None, 0).prompts == ("cat", "kitten")


def test_too_many_classes_are_refused() -> None:
    says = "10,001 classes: the limit is 10,000"
    assert refusal(parse, [str(number) for number in range(10_001)]) == says


def test_the_80_templates_are_clips() -> None:
    assert len(set(templates())) == 80
    assert templates()[0] == "a bad photo of a {}."
    assert templates("plain") == ("{}",)


def test_templates_from_a_file_and_unusable_ones(tmp_path: Path) -> None:
    path = tmp_path / "templates.txt"
    path.write_bytes("\ufeffa photo of a {}.\r\n# no\r\na {} from above\r\n".encode())
    assert templates(path) == ("a photo of a {}.", "a {} from above")
    path.write_text("a photo\n")
    assert refusal(templates, path) == f"{path}: each template must contain {{}}, got 'a photo'"
    path.write_text("")
    assert refusal(templates, path) == f"{path}: expected a list of templates, got []"
    path.write_bytes(b"\xff\xfe{}")
    assert refusal(templates, path).startswith(f"{path}: cannot be read as templates")
    assert "no templates 'imagenet8'; did you mean 'imagenet80'?" in refusal(templates, "imagenet8")


def test_a_vocabulary_cannot_be_built_wrong() -> None:
    assert "has no names" in refusal(Vocabulary, ("a", "b"), (("x",), ()))
    assert Vocabulary(("background", "b"), ((), ("x",)), has_background=True).class_of == (1,)
    assert json.dumps(load("voc20").classes)
