"""A project's label config -> the words to ask for, the settings, and where the answers belong.

    <View>
      <Image name="image" value="$photo"/>
      <BrushLabels name="label" toName="image" naclip-threshold="0.2">
        <Label value="Sofa" naclip="sofa, couch, settee"/>
        <Label value="cat"/>
      </BrushLabels>
    </View>

A label is asked for by the names in its attribute `naclip`, else by its value. Attributes
`naclip-...` of the control are settings of naclip, and options of its exports.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, create_model

from naclip import __version__, vocabulary
from naclip.errors import NaclipError
from naclip.export.item import Classes
from naclip.export.label_studio import Control
from naclip.export.options import Options
from naclip.serve import asked, body
from naclip.serve.fields import EVERY, WORDS, Fields, settings_fields
from naclip.serve.label_studio import config
from naclip.serve.label_studio.config import Attributes, Found
from naclip.serve.limits import Limits
from naclip.serve.problems import Problem
from naclip.settings import Settings
from naclip.vocabulary import BACKGROUND, Vocabulary, folded

PREFIX = "naclip-"
# Polygons or not is the control's own choice.
OPTIONS: dict[str, Any] = {
    part.name: (type(part.default), Field(part.default))
    for part in dataclasses.fields(Options)
    if part.name != "polygons"
}
ProjectFields = create_model(
    "Project",
    __base__=Fields,
    **{name: WORDS[name] for name in ("background", "templates")},
    **settings_fields(*EVERY),
    **OPTIONS,
)


@dataclass(frozen=True)
class Project:
    control: Control
    key: str  # of a task's data, where its image is
    words: Vocabulary
    classes: Classes  # the same, as Label Studio wants to hear of them
    templates: tuple[str, ...]
    settings: Settings
    options: Options

    def version(self, model: str) -> str:
        """Another one whenever predictions may change: Label Studio asks again for that only."""
        told = (*dataclasses.astuple(self), model)
        return f"naclip {__version__} {model} {hashlib.sha256(repr(told).encode()).hexdigest()[:8]}"


def of(xml: str, base: Settings, limits: Limits) -> Project:
    """With the model's own settings where the label config has none."""
    found = config.find(xml)
    try:
        fields: Any = _fields(found.attributes)
        settings = asked.settings(fields, base, limits)
        words = _words(found, fields.background, settings.decoding.threshold, limits)
        options = Options(**{name: getattr(fields, name) for name in OPTIONS})
    except Problem as problem:
        raise config.wrong(problem.detail) from None
    except NaclipError as error:
        raise config.wrong(str(error)) from None
    titles = tuple(label.get("alias") or label["value"] for label in found.labels)
    classes = Classes((BACKGROUND,) * words.has_background + titles, words.has_background)
    templates = vocabulary.templates(fields.templates)
    return Project(found.control, found.key, words, classes, templates, settings, options)


def _words(
    found: Found, background: bool | list[str] | None, threshold: float, limits: Limits
) -> Vocabulary:
    titles = tuple(label["value"] for label in found.labels)
    names = tuple(_names(label) for label in found.labels)
    if background is None:  # labels are seldom of everything that is in an image
        background = BACKGROUND not in map(folded, titles)
    return asked.bounded(Vocabulary(titles, names), background, threshold, limits)


def _names(label: Attributes) -> tuple[str, ...]:
    """A label's value may be of any language or a code: names of its own take its place."""
    own = label.get("naclip")
    return tuple(" ".join(name.split()) for name in (own.split(",") if own else [label["value"]]))


def _fields(attributes: Attributes) -> BaseModel:
    given = {
        name.removeprefix(PREFIX).replace("-", "_"): text.split(",")
        for name, text in attributes.items()
        if name.startswith(PREFIX)
    }
    values = {n: body.scalar_or_list(n, texts, ProjectFields) for n, texts in given.items()}
    return body.validated(values, ProjectFields)
