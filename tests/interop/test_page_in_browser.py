"""The service's page in Chromium, if there is one: its script runs, it fits, and nothing of others' runs."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laketier.service.state import StateStore, Success
from service_page import Page, fill, served
from state_tables import A, Clock

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


# The browser reads 3 and writes 4, and other descriptors may have these numbers here.
_AS_3_AND_4 = """
import fcntl, os, sys
high = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One tab, driven by the DevTools protocol over a pipe: JSON messages that end in NUL."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        to_browser, to_us = os.pipe(), os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AS_3_AND_4, str(to_browser[0]), str(to_us[1]), CHROMIUM, *options,
             "--remote-debugging-pipe", "about:blank"],
            pass_fds=(to_browser[0], to_us[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser[0])
        os.close(to_us[1])
        self._to, self._from = os.fdopen(to_browser[1], "wb"), os.fdopen(to_us[0], "rb")
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """To the tab that it opens with."""
        (tab,) = [each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._from.fileno(), 1 << 20)
            assert part, "the browser ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def show(self, url: str, width: int = 1280, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(each.get("method") == "Page.loadEventFired" for each in self.events):
            self.events.append(self._next())

    def value(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def troubles(self) -> list[dict[str, Any]]:
        """Dialogs, exceptions, and what the console complains about."""
        kinds = ("Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Log.entryAdded")
        return [each for each in self.events if each.get("method") in kinds]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._to.close()
        self._from.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[StateStore]:
    with StateStore.open(f"sqlite:///{tmp_path}/state.db", clock=clock, service="demo", seed=1) as opened:
        yield opened


@pytest.fixture
def page(store: StateStore, clock: Clock) -> Iterator[Page]:
    fill(store, clock)
    with served(store) as made:
        yield made


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    opened = Browser(tmp_path / "profile")
    try:
        opened.attach()
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_pages_fit_and_nothing_of_others_runs(browser: Browser, page: Page, width: int, tmp_path: Path) -> None:
    statuses = page.store.snapshot()
    for path in ["/", "/dead-letters", *(f"/tables/{each.table.id}" for each in statuses)]:
        browser.show(page.url.rstrip("/") + path, width)
        assert browser.value("document.documentElement.scrollWidth") <= width, path
        assert browser.value("document.querySelectorAll('main script').length") == 0
        assert browser.value("getComputedStyle(document.querySelector('header')).display") == "flex", "the style is on"
        assert browser.value("document.getElementById('refreshed').textContent").startswith("as of ")
        assert browser.troubles() == []
        browser.picture(tmp_path / f"{width}{path.replace('/', '_')}.png")
        wrapped = [each for each in statuses if path.endswith(f"/{each.table.id}")]
        if wrapped:
            assert browser.value("document.querySelector('h1').textContent") == wrapped[0].table.name
    browser.show(page.url, width)
    cut = "[...document.querySelectorAll('main td')].filter(each => each.scrollWidth > each.clientWidth + 1).length"
    assert browser.value(cut) == 0, "no text leaves its cell"


def test_the_page_shows_by_itself_what_is_new(browser: Browser, page: Page, clock: Clock) -> None:
    browser.show(page.url)
    assert "9,999,999" not in browser.value("document.body.textContent")
    clock.pass_seconds(100)
    (lease,) = (each for each in page.store.acquire(A, 9, 30) if each.table.source_table == "orders")
    page.store.finish(lease, Success(epoch=99, rows=9_991_665, lag_offsets=0))
    seen = """new Promise(done => {
      const look = () => document.body.textContent.includes("9,999,999") && done(true);
      new MutationObserver(look).observe(document.body, {childList: true, subtree: true});
    })"""
    assert browser.value(seen)
    assert browser.troubles() == []


def test_the_page_says_when_nobody_answers(browser: Browser, store: StateStore, clock: Clock) -> None:
    fill(store, clock)
    with served(store) as page:
        browser.show(page.url)
    seen = """new Promise(done => {
      const look = () => document.body.classList.contains("old") && done(refreshed.textContent);
      new MutationObserver(look).observe(document.body, {attributes: true});
    })"""
    assert browser.value(seen).startswith("no answer since ")
