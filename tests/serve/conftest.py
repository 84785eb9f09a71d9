"""One server for most tests, one small and guarded, and Debian's browser."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webdriver import WebDriver

from naclip.pipeline import Segmenter, load
from naclip.synthetic import draw

from .servers import Server
from .studio_page import Page

TOKEN = "a-token-for-tests"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


@pytest.fixture(scope="session")
def tiny() -> Segmenter:
    return load("tiny", device="cpu")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # A small cache, so that it is full early and memory can be seen to be flat.
    started = Server(tmp_path_factory.mktemp("server"), "--cache-bytes", "16000000").wait()
    yield started
    assert started.stop() == 0


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With a token, a queue of 2, and little patience."""
    arguments = ["--queue", "2", "--body-seconds", "1", "--max-bytes", "300000"]
    arguments += ["--max-pixels", "1000000", "--max-classes", "50", "--jobs", "2"]
    folder = tmp_path_factory.mktemp("guarded")
    started = Server(folder, *arguments, env={"NACLIP_TOKEN": TOKEN}).wait()
    yield started
    assert started.stop() == 0


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def guest(guarded: Server) -> Iterator[httpx.Client]:
    """A client of the guarded server that knows the token."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=guarded.url, timeout=60, headers=headers) as client:
        yield client


@pytest.fixture(scope="session")
def scene() -> Callable[[int], np.ndarray]:
    def drawn(seed: int) -> np.ndarray:
        return draw(seed, (96, 128), scale=1, split="held-out", samples=1).image

    return drawn


@pytest.fixture(scope="session")
def png(scene: Callable[[int], np.ndarray]) -> Callable[[int], bytes]:
    def encoded(seed: int) -> bytes:
        file = io.BytesIO()
        Image.fromarray(scene(seed)).save(file, format="PNG")
        return file.getvalue()

    return encoded


@pytest.fixture(scope="session")
def browser_files() -> tuple[Path, Path]:
    """chromium and chromedriver; absent ones are a failure with the line that mends it."""
    found = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
    if not all(path.exists() for path in found):
        pytest.fail("the studio is tested in chromium: apt-get install chromium chromium-driver")
    return found


@pytest.fixture(scope="session")
def driver(
    browser_files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebDriver]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(browser_files[0])
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(str(browser_files[1])))
    yield started
    started.quit()


@pytest.fixture
def page(driver: WebDriver, server: Server, tmp_path: Path) -> Iterator[Page]:
    """Afterwards: no console error, and no request but to the service."""
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    behaviour = {"behavior": "allow", "downloadPath": str(downloads)}
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    driver.get_log("performance")
    driver.get_log("browser")
    page = Page(driver, server.url, downloads)
    page.size(1360, 900, dark=False)
    yield page
    severe = [row for row in driver.get_log("browser") if row["level"] == "SEVERE"]
    # Chromium logs every answer of the 400s too; those the page shows or mends.
    assert [
        row for row in severe if "the server responded with a status of 4" not in row["message"]
    ] == []
    assert page.hosts_asked() == {f"127.0.0.1:{server.port}"}
