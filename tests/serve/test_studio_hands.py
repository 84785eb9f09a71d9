"""The studio by keyboard, drop, paste, clipboard and links, in Debian's chromium."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from naclip.pipeline import Segmenter
from naclip.serve.lists import _scene
from naclip.synthetic import draw

from .conftest import TOKEN
from .servers import Server
from .studio_page import Page

FIVE = "#e=meadow&w=sky&w=grass%3Dlawn&w=fish&w=house&r=0"


def give(page: Page, event: str, image: bytes, name: str) -> None:
    """A file in the hands of an event of the whole page, as a drop or a paste brings it."""
    page.js(
        f"const bytes = Uint8Array.from(atob('{b64encode(image).decode()}'), c => c.charCodeAt());"
        f"const data = new DataTransfer();"
        f"data.items.add(new File([bytes], '{name}', {{type: 'image/png'}}));"
        f"document.body.dispatchEvent({event})"
    )
    page.rest()


DROP = "new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})"
PASTE = "new ClipboardEvent('paste', {clipboardData: data, bubbles: true})"


@pytest.mark.parametrize(("event", "name"), [(DROP, "dropped.png"), (PASTE, "pasted.png")])
def test_a_dropped_or_pasted_image_is_segmented(
    page: Page, tiny: Segmenter, event: str, name: str
) -> None:
    page.open("#w=sky&w=grass&w=fish&r=0")
    file = io.BytesIO()
    Image.fromarray(draw(21, (96, 128), scale=2).image).save(file, format="PNG")
    give(page, event, file.getvalue(), name)
    page.until(lambda: page.js("return document.body.dataset.image") == name)
    page.rest()
    expected = tiny(file.getvalue(), ["sky", "grass", "fish"], refine=False)
    found = dict(zip(page.titles(), page.shares(), strict=True))
    for title, share in expected.coverage.items():
        assert float(found[title].rstrip("%")) == pytest.approx(100 * share, abs=0.6)


def test_the_keyboard_alone_reaches_everything_and_keeps_its_place(page: Page) -> None:
    page.open(FIVE)
    focused = (
        "return document.activeElement.getAttribute('aria-label') || document.activeElement.id"
    )

    def press(*keys: str) -> str:
        page.driver.switch_to.active_element.send_keys(*keys)
        page.rest()
        return str(page.js(focused))

    page.find("#tab-mask").send_keys(Keys.ARROW_RIGHT)
    page.rest()
    assert page.js(focused) == "tab-heat"
    assert page.find("#tab-heat").get_attribute("aria-selected") == "true"
    page.js("document.querySelector('#heats button').focus()")
    press(Keys.TAB)
    press(Keys.ENTER)
    assert page.js("return document.activeElement.textContent") == "grass"
    assert page.js("return document.activeElement.getAttribute('aria-pressed')") == "true"
    page.find("#word").send_keys(Keys.TAB)
    assert press(Keys.TAB) == "Show sky"
    assert press(Keys.SPACE) == "Show sky"
    assert "off=sky" in page.js("return location.hash")
    assert press(Keys.TAB) == "Edit sky and its synonyms"
    assert press(Keys.ENTER) == "Word=synonym,synonym"
    assert press("=clouds", Keys.ENTER) == "Edit sky and its synonyms"
    assert page.find("#chips li small").text == "+1"
    assert press(Keys.TAB) == "Remove sky"
    for title in ("grass", "fish", "house"):
        assert press(Keys.ENTER) == f"Remove {title}"
    assert press(Keys.ENTER) == "word"
    assert page.titles() == []


def test_a_word_removed_while_hidden_comes_back_visible(page: Page) -> None:
    page.open(FIVE)
    page.click("#chips li[data-title=sky] .eye")
    page.click("#chips li[data-title=sky] .remove")
    page.type_word("sky", Keys.ENTER)
    assert page.find("#chips li[data-title=sky] .eye").get_attribute("aria-pressed") == "true"


def test_what_only_the_browser_reads_goes_over_as_png(page: Page, tmp_path: Path) -> None:
    page.open("#w=sky&w=grass&w=fish&r=0")
    icon = tmp_path / "scene.ico"
    Image.fromarray(draw(21, (96, 128), scale=2).image).save(icon, sizes=[(256, 192)])
    page.find("#file").send_keys(str(icon))
    page.until(lambda: page.js("return document.body.dataset.image") == "scene.ico")
    page.rest()
    assert page.error() == ""
    assert all(share.endswith("%") for share in page.shares())


def test_the_heat_that_is_marked_is_the_one_over_the_image(page: Page) -> None:
    """With a background, which is the first class, and after the chosen word is removed."""
    pressed = "return document.querySelector('#heats [aria-pressed=true]').textContent"
    page.open(FIVE + "&v=heat&bg=voc21")
    assert page.js(pressed) == "sky"
    shown = page.pixels()
    page.click("#heats button:nth-child(1)")
    assert page.js(pressed) == "background"
    assert not np.array_equal(page.pixels(), shown)
    page.click("#heats button:nth-child(4)")
    assert page.js(pressed) == "fish"
    page.click("#chips li[data-title=fish] .remove")
    assert page.js(pressed) == "sky"
    page.js("document.getElementById('over').focus()")
    page.find("#over").send_keys(Keys.ARROW_LEFT)
    assert page.until(lambda: page.find("#reading").text).startswith("sky ")


def test_a_link_opened_in_the_same_tab_is_followed(page: Page) -> None:
    page.open(FIVE)
    page.js("location.hash = '#e=snow&w=snow&w=fish&r=0&o=0.8'")
    page.until(lambda: page.titles() == ["snow", "fish"])
    page.until(lambda: page.js("return document.body.dataset.image") == "snow.png")
    page.rest()
    followed = page.pixels()
    page.open("#e=snow&w=snow&w=fish&r=0&o=0.8")
    np.testing.assert_array_equal(page.pixels(), followed)


def test_the_copied_command_gives_the_mask_on_the_page(
    page: Page, tiny: Segmenter, tmp_path: Path
) -> None:
    page.open(FIVE + "&t=0.3&bg=own&bw=wall%2Csky%20light")
    # Where the browser refuses its clipboard, as it does on plain http of another host.
    page.js("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
    page.js("document.addEventListener('copy', () => { window.copied = `${getSelection()}`; })")
    page.find("#copy").click()  # a real one: browsers let no script copy on its own
    assert page.until(lambda: page.find("#copy").text != "Copy")
    assert page.find("#copy").text == "Copied"
    command = page.find("#code").get_attribute("textContent")
    assert page.js("return window.copied") == command
    (tmp_path / "meadow.png").write_bytes(_scene("meadow"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-euc", command], cwd=tmp_path, check=True, env={**os.environ, "PATH": path}
    )
    mask = np.asarray(Image.open(tmp_path / "mask.png"))
    np.testing.assert_array_equal(mask, np.asarray(Image.open(page.export("mask"))))


def test_the_overlay_of_the_attention_view_is_the_mask(page: Page) -> None:
    page.open(FIVE)
    saved = page.export("overlay")
    mask = np.asarray(Image.open(saved))
    saved.unlink()
    page.click("#tab-attention")
    np.testing.assert_array_equal(np.asarray(Image.open(page.export("overlay"))), mask)


def test_commas_are_between_words_unless_one_has_synonyms(page: Page) -> None:
    page.open(FIVE)
    page.type_word("snow, Fish ,, sand,", Keys.ENTER)
    assert page.titles() == ["sky", "grass", "house", "snow", "Fish", "sand"]
    page.type_word("tree=bush, hedge", Keys.ENTER)
    assert page.titles()[-1] == "tree"
    assert page.find("#chips li:last-child small").text == "+2"
    assert page.error() == ""


def test_a_token_is_asked_for_until_it_is_right(
    page: Page, driver: WebDriver, guarded: Server, tmp_path: Path
) -> None:
    other = Page(driver, guarded.url, tmp_path)
    driver.get(guarded.url)

    def answer(*keys: str) -> None:
        other.until(lambda: other.js("return document.getElementById('token-dialog').open"))
        other.find("#token").send_keys(*keys)

    answer("wrong", Keys.ENTER)
    other.until(lambda: other.find("#token-wrong").is_displayed())
    answer(Keys.ESCAPE)  # rather not: said, and not asked again
    assert "the token is not the right one" in other.until(other.error)
    assert not other.js("return document.getElementById('token-dialog').open")
    driver.refresh()
    answer(TOKEN, Keys.ENTER)
    other.rest()
    assert other.find("#model").text == "tiny"
    assert other.hosts_asked() == {f"127.0.0.1:{guarded.port}"}
    page.open()


def test_a_service_that_is_gone_is_said(page: Page, tmp_path: Path) -> None:
    page.open(FIVE)
    page.js("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
    page.type_word("snow", Keys.ENTER)
    assert "Is naclip serve still running?" in page.until(page.error)
