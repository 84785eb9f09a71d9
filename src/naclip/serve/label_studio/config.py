"""A project's label config, XML that a client sends -> the control that gets the answers.

Read by expat, tag by tag, into a flat list: no entities, no document types, no tree to nest deeply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast
from xml.parsers import expat

from naclip.export.label_studio import Control, Kind
from naclip.serve.problems import Problem, unprocessable

FIELD = "label_config"
MAX_CHARACTERS = 1_000_000
KINDS: tuple[Kind, ...] = ("BrushLabels", "PolygonLabels")
Attributes = dict[str, str]


@dataclass(frozen=True)
class Found:
    """The tag that answers belong to."""

    control: Control
    key: str  # of a task's data, where the image is
    attributes: Attributes  # of the control
    labels: tuple[Attributes, ...]


@dataclass
class _Tags:
    images: dict[str, str] = field(default_factory=dict)  # name -> value
    controls: list[tuple[str, Attributes, list[Attributes]]] = field(default_factory=list)
    inside: bool = False  # of the last control

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "Image":
            self.images[attributes.get("name", "")] = attributes.get("value", "")
        elif tag in KINDS:
            self.controls.append((tag, attributes, []))
            self.inside = True
        elif tag == "Label" and self.inside:
            self.controls[-1][2].append(attributes)

    def end(self, tag: str) -> None:
        self.inside = self.inside and tag not in KINDS


def find(xml: str) -> Found:
    """The first BrushLabels or PolygonLabels that is for an Image."""
    tags = _read(xml)
    for tag, attributes, labels in tags.controls:
        name, image = attributes.get("name", ""), attributes.get("toName", "")
        if image not in tags.images:
            continue
        value = tags.images[image]
        if not value.startswith("$") or not value[1:]:
            raise wrong(f"Image {image!r} has the value {value!r}: use $ and a field of the tasks")
        if not labels:
            raise wrong(f"{tag} {name!r} has no Label: add one for each class")
        for label in labels:
            if not label.get("value", "").strip():
                raise wrong(f"a Label of {tag} {name!r} has no value: give it one")
        control = Control(cast(Kind, tag), name, image)
        return Found(control, value[1:], attributes, tuple(labels))
    raise wrong(
        f"no {' or '.join(KINDS)} for an Image: add one to the project's labeling interface"
    )


def _read(xml: str) -> _Tags:
    if len(xml) > MAX_CHARACTERS:
        raise wrong(f"{len(xml):,} characters: the limit is {MAX_CHARACTERS:,}")
    tags = _Tags()
    parser = expat.ParserCreate()
    parser.StartElementHandler = tags.start
    parser.EndElementHandler = tags.end
    parser.StartDoctypeDeclHandler = _no_document_type
    try:
        parser.Parse(xml, True)
    except (expat.ExpatError, ValueError) as error:  # ValueError: text that is not Unicode
        raise wrong(f"not XML ({error})"[:200]) from None
    return tags


def _no_document_type(*_: object) -> None:
    """Entities can be declared nowhere else."""
    raise wrong("it has a document type: remove <!DOCTYPE ...>")


def wrong(detail: str) -> Problem:
    return unprocessable(f"the label config: {detail}", FIELD)
