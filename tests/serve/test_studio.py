"""The studio in Debian's chromium: what a person does, seen on the page and in its files."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys

from naclip.pipeline import Segmenter
from naclip.serve.lists import _scene
from naclip.synthetic import draw

from .servers import Server
from .studio_page import Page
from .test_routes import decoded

PICTURES = Path(__file__).parents[2] / "docs" / "images"


def test_example_words_and_mask(page: Page, server: Server, tiny: Segmenter) -> None:
    page.open()
    page.click("[data-example=shore]")
    titles = page.titles()
    assert {"water", "sand", "fish"} <= set(titles)
    before = page.pixels()
    assert (before[..., 3] > 0).all()
    page.type_word("turt", Keys.ARROW_DOWN, Keys.ENTER)  # a suggestion, with its synonym
    assert page.titles() == [*titles, "turtle"]
    assert "turtle=tortoise" in page.js("return decodeURIComponent(location.hash)")
    page.type_word("sky", Keys.ENTER)
    page.click("#chips li[data-title=water] .remove")
    assert page.titles() == [*[t for t in titles if t != "water"], "turtle", "sky"]
    assert not np.array_equal(page.pixels(), before)
    words = page.js("return [...new URLSearchParams(location.hash.slice(1)).getAll('w')]")
    expected = tiny(_scene("shore"), words)
    found = dict(zip(page.titles(), page.shares(), strict=True))
    for name, share in expected.coverage.items():
        assert float(found[name].rstrip("%")) == pytest.approx(100 * share, abs=0.6), name
    # Hiding a class clears its pixels and nothing else.
    label = expected.classes.index("sand")
    page.click("#chips li[data-title=sand] .eye")
    assert (page.pixels()[..., 3][expected.labels == label] == 0).all()
    assert (page.pixels()[..., 3][expected.labels != label] > 0).all()


def test_cursor_threshold_and_refinement(page: Page, server: Server, tiny: Segmenter) -> None:
    page.open("#e=snow&w=snow&w=fish&w=chessboard&w=strawberry&w=umbrella&r=0")
    words = ["snow", "fish", "chessboard", "strawberry", "umbrella"]
    expected = tiny(_scene("snow"), words, refine=False)
    over = page.find("#over")
    over.send_keys(Keys.ARROW_RIGHT)
    page.js("document.getElementById('over').focus()")
    over.send_keys(Keys.ARROW_LEFT)
    text = page.until(lambda: page.find("#reading").text)
    x, y = (int(part) for part in text.split(" at ")[1].split(", "))
    name = expected.classes[expected.labels[y, x]]
    assert text.startswith(f"{name} {100 * expected.scores[y, x]:.0f}%"[:-3])
    asked = server.metric("naclip_requests_total")
    page.slide("threshold", 0.6)
    thresholded = tiny(_scene("snow"), words, refine=False, threshold=0.6)
    clear = page.pixels()[..., 3] == 0
    assert (clear != (thresholded.labels == 0)).mean() < 1e-3  # rounding to 16 bit
    assert 0 < clear.mean() < 1
    assert server.metric("naclip_requests_total") == asked + 1  # the reading of the metric itself
    page.slide("threshold", 0)
    plain = page.pixels()
    page.click("#refine")
    assert not np.array_equal(page.pixels(), plain)


def test_heat_attention_and_comparison(page: Page, tiny: Segmenter) -> None:
    page.open("#e=meadow&w=sky&w=grass&w=fish&w=house&r=0")
    page.click("#tab-heat")
    assert len(page.all("#heats button")) == 4
    first = page.pixels()
    page.click("#heats button:nth-child(3)")
    assert not np.array_equal(page.pixels(), first)
    page.click("#tab-attention")
    page.until(lambda: not page.find("#marker").get_attribute("hidden"))
    panels = [page.pixels(f"#attention figure:nth-child({n}) canvas") for n in (1, 2, 3)]
    assert not np.array_equal(panels[0], panels[2])
    page.js(
        "const o = document.getElementById('over'), b = o.getBoundingClientRect();"
        "o.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: b.left + b.width * 0.3,"
        " clientY: b.top + b.height * 0.65}))"
    )
    page.rest()
    assert "y=7" in page.js("return location.hash")
    assert "x=4" in page.js("return location.hash")
    clicked = [page.pixels(f"#attention figure:nth-child({n}) canvas") for n in (1, 2, 3)]
    assert all(not np.array_equal(a, b) for a, b in zip(panels, clicked, strict=True))
    page.slide("sigma", 6)
    wider = [page.pixels(f"#attention figure:nth-child({n}) canvas") for n in (1, 2, 3)]
    same = [np.array_equal(a, b) for a, b in zip(clicked, wider, strict=True)]
    assert same == [True, True, False]  # sigma is NACLIP's alone
    page.click("#tab-compare")
    assert page.find("#side-a").text == "clip"
    page.slide("wipe", 1)
    all_left = page.pixels()
    page.slide("wipe", 0)
    assert not np.array_equal(page.pixels(), all_left)
    page.click("#tab-mask")
    page.js(
        "const m = document.getElementById('method'); m.value = 'clip';"
        "m.dispatchEvent(new Event('change'))"
    )
    page.rest()
    np.testing.assert_array_equal(page.pixels(), all_left)


def test_exports_hold_what_the_library_gives(page: Page, tiny: Segmenter) -> None:
    words = ["sky", "grass=lawn", "fish", "house"]
    page.open("#e=meadow&w=sky&w=grass%3Dlawn&w=fish&w=house&r=0&t=0.3")
    expected = tiny(_scene("meadow"), words, refine=False, threshold=0.3)
    mask = np.asarray(Image.open(page.export("mask")))
    np.testing.assert_array_equal(mask, expected.labels)
    overlay = Image.open(page.export("overlay"))
    assert overlay.size == (512, 384)
    document = json.loads(page.export("json").read_text())
    assert [row["name"] for row in document["classes"]] == list(expected.classes)
    coco = json.loads(page.export("coco").read_text())
    names = {row["id"]: row["name"] for row in coco["categories"]}
    assert coco["annotations"]
    for row in coco["annotations"]:
        found = decoded(row["segmentation"]["counts"], row["segmentation"]["size"])
        np.testing.assert_array_equal(found, expected.mask(names[row["category_id"]]))
    shell = page.find("#code").text
    assert "-c grass=lawn" in shell
    assert "--no-refine" in shell
    assert "--threshold 0.3" in shell
    page.click("[name=code][value=python]")
    program = page.find("#code").text
    namespace: dict[str, Any] = {}
    program = program.replace('"meadow.png"', "IMAGE").replace('result.save("mask.png")', "")
    exec(program, {"IMAGE": _scene("meadow")}, namespace)  # it is meant to be run
    np.testing.assert_array_equal(namespace["result"].labels, expected.labels)


def test_the_url_brings_the_view_back(page: Page) -> None:
    page.open("#e=snow&w=snow&w=fish&w=umbrella%3Dparasol&r=0&v=compare&a=gem&p=0.3&t=0.2&o=0.8")
    before, shares = page.pixels(), page.shares()
    fragment = page.js("return location.hash")
    page.open(fragment)
    np.testing.assert_array_equal(page.pixels(), before)
    assert page.shares() == shares
    assert page.js("return location.hash") == fragment


def test_own_images_and_broken_ones(page: Page, tmp_path: Path, tiny: Segmenter) -> None:
    page.open()
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    page.find("#file").send_keys(str(broken))
    assert "broken.png: not an image" in page.until(page.error)
    own = tmp_path / "own.png"
    Image.fromarray(draw(11, (96, 128), scale=2).image).save(own)
    page.find("#file").send_keys(str(own))
    page.until(lambda: page.js("return document.body.dataset.image") == "own.png")
    page.rest()
    assert page.error() == ""
    assert page.pixels().shape[:2] == (192, 256)
    page.click("#clear")
    assert "two things" in page.find("#note").text
    page.type_word("sky", Keys.ENTER)
    page.type_word("sky=clouds, sky", Keys.ENTER)
    assert "given twice" in page.error()


@pytest.mark.parametrize(
    ("name", "size", "dark", "fragment"),
    [
        ("studio-desktop", (1360, 900), False, "#e=shore"),
        ("studio-attention-dark", (1360, 1000), True, "#e=meadow&v=attention&y=4&x=9&s=1.2"),
        ("studio-phone", (390, 844), True, "#e=lawn"),
        ("studio-compare", (1360, 900), False, "#e=snow&v=compare"),
    ],
)
def test_screenshots_of_the_docs(
    page: Page, name: str, size: tuple[int, int], dark: bool, fragment: str
) -> None:
    """Nothing is wider than the screen; NACLIP_SCREENSHOTS=1 renews the pictures of the docs."""
    page.size(*size, dark)
    page.open(fragment)
    time.sleep(0.3)
    picture = Image.open(io.BytesIO(page.driver.get_screenshot_as_png()))
    if os.environ.get("NACLIP_SCREENSHOTS"):
        picture.convert("RGB").quantize(256).save(PICTURES / f"{name}.png", optimize=True)
    assert page.js("return document.documentElement.scrollWidth") <= size[0]
    small = page.js(
        "return [...document.querySelectorAll('button, select, input')]"
        ".filter(e => e.offsetParent && e.getBoundingClientRect().height < 17).map(e => e.id)"
    )
    assert small == []
    unnamed = page.js(
        "return [...document.querySelectorAll('button')].filter(e => e.offsetParent &&"
        " !e.textContent.trim() && !e.getAttribute('aria-label')).length"
    )
    assert unnamed == 0
