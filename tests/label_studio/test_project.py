"""A label config -> words, settings and place; Label Studio's own SDK reads the same config."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_studio_sdk.label_interface import LabelInterface

from naclip.serve.label_studio import project
from naclip.serve.label_studio.project import Project
from naclip.serve.limits import Limits
from naclip.serve.problems import Problem
from naclip.settings import Settings
from naclip.vocabulary import voc21_background

LABELS = '<Label value="Katze" naclip="cat, kitten ,  tabby cat"/><Label value="sofa"/>'
CONFIG = """<View>
  <!-- the title, then what is to be done -->
  <Header value="What is it? $title"/>
  <Text name="text" value="$title"/>
  <Labels name="words" toName="text"><Label value="noun"/></Labels>
  <Image name="img" value="$photo" zoom="true"/>
  <{kind} name="parts" toName="img" {more}>
    <View>{labels}</View>
  </{kind}>
</View>
"""


def config(kind: str = "BrushLabels", more: str = "", labels: str = LABELS) -> str:
    return CONFIG.format(kind=kind, more=more, labels=labels)


def read(xml: str, limits: Limits | None = None) -> Project:
    return project.of(xml, Settings(), limits or Limits())


def problem(xml: str, limits: Limits | None = None) -> str:
    with pytest.raises(Problem) as raised:
        read(xml, limits)
    assert raised.value.status == 422
    assert raised.value.field == "label_config"
    return raised.value.detail


@pytest.mark.parametrize("kind", ["BrushLabels", "PolygonLabels"])
def test_the_sdk_sees_the_same_control_image_and_labels(kind: str) -> None:
    labels = LABELS + '<Label value="dog &amp; more" alias="d"/>'
    found, interface = (
        read(config(kind, labels=labels)),
        LabelInterface(config(kind, labels=labels)),
    )
    control = interface.get_control(found.control.name)
    assert control.tag == found.control.kind == kind
    assert control.to_name == [found.control.to_name]
    assert interface.get_object(found.control.to_name).value_name == found.key == "photo"
    assert control.labels == list(found.classes.things) == ["Katze", "sofa", "d"]


def test_names_of_a_label_take_its_values_place() -> None:
    words = read(config()).words
    assert words.classes == ("background", "Katze", "sofa")
    assert words.names[1:] == (("cat", "kitten", "tabby cat"), ("sofa",))


def test_there_is_a_background_unless_it_is_said_otherwise() -> None:
    usual = set(voc21_background()) - {"sofa"}
    assert set(read(config()).words.names[0]) == usual
    assert read(config(more='naclip-background="wall, floor"')).words.names[0] == ("wall", "floor")
    assert not read(config(more='naclip-background="false"')).words.has_background
    own = read(config(labels=LABELS + '<Label value="Background"/>'))
    assert not own.words.has_background
    assert own.classes.names == ("Katze", "sofa", "Background")


def test_attributes_of_the_control_are_settings_and_options() -> None:
    more = 'naclip-threshold="0.25" naclip-refine="false" naclip-refine-dilations="4,8" '
    more += 'naclip-method="sclip" naclip-instances="true" naclip-min-pixels="20" opacity="0.4" '
    found = read(config(more=more + 'naclip-simplify="1.5" naclip-templates="plain"'))
    assert found.settings.flat()["threshold"] == 0.25
    assert found.settings.flat()["refine"] is False
    assert tuple(found.settings.flat()["refine_dilations"]) == (4, 8)
    assert found.settings.method.name == "sclip"
    assert (found.options.instances, found.options.min_pixels) == (True, 20)
    assert found.options.simplify == 1.5
    assert found.templates == ("{}",)


def test_the_version_changes_with_whatever_changes_predictions() -> None:
    changed = [
        config(),
        config("PolygonLabels"),
        config(more='naclip-threshold="0.25"'),
        config(more='naclip-instances="true"'),
        config(labels=LABELS + '<Label value="dog"/>'),
        config(labels=LABELS.replace("kitten", "puss")),
        config(labels=LABELS.replace('"sofa"', '"sofa" alias="s"')),
    ]
    versions = [read(xml).version("tiny") for xml in changed]
    assert len(set(versions)) == len(changed)
    assert read(config()).version("ViT-B/16") not in versions
    assert read(config().replace("the title", "a title")).version("tiny") == versions[0]


@pytest.mark.parametrize(
    ("xml", "said"),
    [
        ("", "not XML"),
        ("<View><Image></View>", "not XML"),
        ("<View/>", "no BrushLabels or PolygonLabels for an Image: add one"),
        (config("RectangleLabels"), "no BrushLabels or PolygonLabels for an Image"),
        (config().replace('toName="img"', 'toName="text"'), "for an Image"),
        (config(labels=""), "BrushLabels 'parts' has no Label"),
        (config(labels='<Label background="red"/>'), "a Label of BrushLabels 'parts' has no value"),
        (config().replace("$photo", "http://x/y.jpg"), "use $ and a field of the tasks"),
        (config(labels=LABELS + LABELS), "given twice"),
        (config(labels='<Label value="a" naclip="b,,c"/>'), "has an empty name"),
        (config(labels='<Label value="a" naclip="x"/><Label value="b" naclip="x"/>'), "'x' is in"),
        (config(more='naclip-treshold="1"'), "did you mean 'threshold'?"),
        (config(more='naclip-threshold="much"'), "threshold: "),
        (config(more='naclip-threshold="0,3"'), "threshold is given 2 times"),
        (config(more='naclip-threshold="7"'), "threshold is 7"),
        (config(more='naclip-method="nacilp"'), "did you mean 'naclip'?"),
        (config(more='naclip-min-pixels="0"'), "min_pixels is 0"),
        (config(more='naclip-polygons="true"'), "polygons"),
        (config(more='naclip-refine-steps="999"'), "the limit is 50"),
        (config(labels=f'<Label value="{"x" * 300}"/>'), "the limit is 200"),
        (config(labels=f"<Label value='a'/>{' ' * 1_000_000}"), "the limit is 1,000,000"),
        ("<View>\ud800</View>", "not XML"),
    ],
)
def test_a_config_that_cannot_be_used_says_why(xml: str, said: str) -> None:
    assert said in problem(xml)


def test_too_many_labels_are_refused() -> None:
    labels = "".join(f'<Label value="{number}"/>' for number in range(30))
    assert "the limit is 50" in problem(config(labels=labels), Limits(max_classes=50))


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><View>&b;</View>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><View>&a;</View>'


@pytest.mark.parametrize("xml", [BOMB, OUTSIDE, '<!DOCTYPE x SYSTEM "http://127.0.0.1/x"><View/>'])
def test_document_types_and_so_entities_are_refused(xml: str) -> None:
    assert "document type" in problem(xml)


def test_deep_nesting_is_read_without_recursion() -> None:
    depth = 30_000
    inner = config()
    assert read("<View>" * depth + inner + "</View>" * depth).key == "photo"


@given(text=st.text() | st.text(alphabet='<>/="& abLV!?[]-\n').map("<View>{}</View>".format))
def test_whatever_is_sent_is_a_problem_or_a_project(text: str) -> None:
    with contextlib.suppress(Problem):
        read(text)
