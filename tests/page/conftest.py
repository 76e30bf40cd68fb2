"""A running emulator, its page and the page of a report in a headless Chromium; run by `make page`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests
from emulator.server import Running, start

HEADERS = {"Authorization": "Bearer token", "Content-Type": "application/json"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 20_000  # milliseconds; the page polls every second, and the machine may be busy


class Service:
    """What a client of the emulator does while somebody watches the page."""

    def __init__(self, running: Running) -> None:
        self.running, self.url = running, running.url

    def create(self, name: str = "web01", **attributes: object) -> int:
        """Request a virtual machine; return the status."""
        return self.send(json.dumps({"name": name, "attributes": attributes}).encode())

    def send(self, raw: bytes) -> int:
        """Request a virtual machine with these bytes as the body; return the status."""
        url = f"{self.url}/api/v1/services/compute/virtual_machines"
        return requests.post(url, data=raw, headers=HEADERS, timeout=10).status_code

    def control(self, method: str, path: str, **options: object) -> object:
        """Call a control endpoint."""
        url = f"{self.url}/_emulator/{path}"
        return requests.request(method, url, headers=HEADERS, timeout=10, **options).json()


class Errors(list):
    """The errors from the browser's console and the page's scripts."""

    def watch(self, page) -> None:
        """Record what goes wrong on this page."""
        page.on(
            "console",
            lambda message: self.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: self.append(str(error)))


@contextmanager
def launched() -> Iterator:
    """A browser."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.fail(
            f"no Chromium: none of {', '.join(BROWSERS)} is on PATH; on Debian: apt-get install chromium",
            pytrace=False,
        )
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  make page installs it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """One browser for all tests."""
    with launched() as one:
        yield one


@pytest.fixture(scope="session")
def expect(browser) -> object:
    """Expectations that wait until they are met."""
    from playwright.sync_api import expect  # noqa: PLC0415  make page installs it

    expect.set_options(timeout=PATIENCE)
    return expect


@pytest.fixture
def service() -> Iterator[Service]:
    """An emulator with a role `role-1`."""
    with start(roles=["role-1"]) as running:
        yield Service(running)


@pytest.fixture
def errors() -> Iterator[Errors]:
    """The errors of the test's pages; a test that provokes some removes them, any other ends with
    none.
    """
    seen = Errors()
    yield seen
    assert seen == []


@pytest.fixture
def page(browser, service, errors) -> Iterator:
    """The page, once it has loaded its data."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    errors.watch(opened)
    opened.goto(service.url)
    opened.get_by_text("live", exact=True).wait_for()
    yield opened
    context.close()
