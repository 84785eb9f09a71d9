"""The studio driven in a browser, and waiting for it to be at rest."""

from __future__ import annotations

import io
import json
import time
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver

PATIENCE = 60


class Page:
    def __init__(self, driver: WebDriver, url: str, downloads: Path) -> None:
        self.driver = driver
        self.url = url
        self.downloads = downloads

    def open(self, fragment: str = "") -> None:
        self.driver.get("about:blank")  # a change of the fragment alone would not load the page
        self.driver.get(f"{self.url}/{fragment}")
        self.rest()

    def rest(self) -> None:
        script = (
            "return document.body.dataset.ready === 'yes' && document.body.dataset.busy === '0'"
        )
        self.until(lambda: self.js(script))

    def until(self, met: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := met():
                return found
            time.sleep(0.05)
        raise AssertionError(f"not met in {PATIENCE} s: {self.error()}")

    def js(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def find(self, css: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def click(self, css: str) -> None:
        self.js(f"document.querySelector({json.dumps(css)}).click()")
        self.rest()

    def type_word(self, *keys: str) -> None:
        self.find("#word").send_keys(*keys)
        self.rest()

    def titles(self) -> list[str]:
        return [row.get_attribute("data-title") for row in self.all("#chips li")]

    def shares(self) -> list[str]:
        return [row.text for row in self.all("#chips .share")]

    def slide(self, control: str, value: float) -> None:
        self.js(
            f"const e = document.getElementById('{control}'); e.value = {value};"
            "e.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        self.rest()

    def pixels(self, css: str = "#over") -> np.ndarray:
        values = self.js(
            f"const c = document.querySelector('{css}');"
            "return [c.width, c.height, c.toDataURL().split(',')[1]]"
        )
        return np.asarray(Image.open(io.BytesIO(b64decode(values[2]))).convert("RGBA"))

    def error(self) -> str:
        return str(
            self.js(
                "const e = document.getElementById('error'); return e.hidden ? '' : e.textContent"
            )
        )

    def export(self, kind: str) -> Path:
        before = set(self.downloads.iterdir())
        self.click(f"[data-export={kind}]")

        def arrived() -> set[Path]:
            fresh = set(self.downloads.iterdir()) - before
            return {path for path in fresh if path.suffix in (".png", ".json")}

        return next(iter(self.until(arrived)))

    def size(self, width: int, height: int, dark: bool) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def hosts_asked(self) -> set[str]:
        lines = [
            json.loads(row["message"])["message"] for row in self.driver.get_log("performance")
        ]
        urls = [
            row["params"]["request"]["url"]
            for row in lines
            if row["method"] == "Network.requestWillBeSent"
        ]
        return {url.split("/")[2] for url in urls if url.startswith(("http", "ws", "ftp"))}
