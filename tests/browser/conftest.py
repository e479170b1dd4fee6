"""Tests in a real browser run in a thread of their own.

Playwright needs the default asyncio loop, which the imports of the service have replaced, and keeps a loop running in
its thread.

People use the pages in the window of a phone. With the environment variable SSO_TEST_ROUNDS (any number), they use the
pages on a desktop, too, and each page is laid out for both. SSO_TEST_SCREENSHOTS names a folder for pictures of
the pages.
"""

import asyncio
import os
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.kit.browser import fresh_browser
from tests.kit.chromium import MISSING, find_chromium, launch_chromium
from tests.kit.server import Server

DISABLED_FEATURES = (
    # Otherwise Chromium would refuse requests of test sites to this machine before the service does.
    "LocalNetworkAccessChecks",
    # A process for a page that may be opened later, and services that ask servers of the vendor.
    "SpareRendererForSitePerProcess", "HttpsUpgrades", "MediaRouter", "NetworkTimeServiceQuerying",
    "OptimizationHints", "PaintHolding", "PreconnectToSearch",
)  # fmt: skip
ARGUMENTS = (
    "--disable-quic", "--disable-component-update", "--disable-sync",
    # Pages share one process.
    "--disable-site-isolation-trials", "--renderer-process-limit=1",
    f"--disable-features={','.join(DISABLED_FEATURES)}",
)  # fmt: skip
DESKTOP, PHONE, HEIGHT = 1280, 390, 844
PICTURES = os.environ.get("SSO_TEST_SCREENSHOTS")
# Ignored console messages: responses with an error status, images of a page that was left early, and a warning about
# username fields that Chromium prints for partly loaded pages, and what the theme of the documentation prints.
IGNORED = (
    "Failed to load resource: the server responded with a status of 4",
    "net::ERR_ABORTED",
    "Autofocus processing was blocked because a document already has a focused element",
    "Changed to ",
    "[DOM] Password forms should have (optionally hidden) username fields",
)
TIMEOUT_MS = 60_000
LONG = "SSO_TEST_ROUNDS" in os.environ
Screenshot = Callable[[str], None]
expect.set_options(timeout=TIMEOUT_MS)
_thread = ThreadPoolExecutor(1, thread_name_prefix="chromium")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if {"page", "scripted", "plain"}.isdisjoint(pyfuncitem.fixturenames):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    _thread.submit(pyfuncitem.obj, **arguments).result()
    return True


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip(MISSING)
    driver, browser = _thread.submit(_start, program).result()
    yield browser
    _thread.submit(browser.close).result()
    _thread.submit(driver.stop).result()


def _start(program: str) -> tuple[Playwright, Browser]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # event loop policies are deprecated
        asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
    driver = sync_playwright().start()
    return driver, launch_chromium(driver, program, ARGUMENTS)


class Window:
    """A browser profile with its own cookies. Collects the errors that the browser reports."""

    def __init__(self, chromium: Browser, **options: Any) -> None:
        self.errors: list[str] = []
        self.context: BrowserContext = chromium.new_context(**options)
        self.context.set_default_timeout(TIMEOUT_MS)
        if options.get("java_script_enabled", True):
            self.context.add_init_script(_LOAD_AXE)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda message: self._collect(message.text))
        self.page.on("pageerror", lambda error: self._collect(str(error)))
        self.page.on("requestfailed", lambda request: self._collect(f"{request.failure} {request.url}"))

    def _collect(self, text: str) -> None:
        if not text.startswith(IGNORED):
            self.errors.append(text)

    def reset(self) -> None:
        """Makes the window as good as new, for tests that keep nothing in the storage of a page."""
        self.page.unroute_all()
        self.page.goto("about:blank")
        self.page.set_extra_http_headers({})
        self.page.emulate_media(color_scheme="light")
        self.context.clear_cookies()


class SharedWindows:
    """Two windows for most tests, with and without JavaScript. Each new window would start another process."""

    def __init__(self, chromium: Browser) -> None:
        self._chromium = chromium
        self._windows: dict[bool, Window] = {}

    @contextmanager
    def use(self, width: int, scripts: bool) -> Iterator[Window]:
        window = _thread.submit(self._open, width, scripts).result()
        yield window
        _thread.submit(window.reset).result()
        assert window.errors == []

    def _open(self, width: int, scripts: bool) -> Window:
        if scripts not in self._windows:
            self._windows[scripts] = Window(self._chromium, java_script_enabled=scripts)
        window = self._windows[scripts]
        window.errors.clear()
        set_width(window.page, width)
        return window


@pytest.fixture(
    params=[DESKTOP, PHONE] if LONG else [PHONE],
    ids={DESKTOP: "desktop", PHONE: "phone"}.get,
)
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="session")
def shared_windows(chromium: Browser) -> SharedWindows:
    return SharedWindows(chromium)


@pytest.fixture
def window(shared_windows: SharedWindows, width: int) -> Iterator[Window]:
    """A window without JavaScript; the pages need none."""
    with shared_windows.use(width, scripts=False) as window:
        yield window


@pytest.fixture
def page(window: Window) -> Page:
    return window.page


@pytest.fixture
def scripted(shared_windows: SharedWindows, width: int) -> Iterator[Page]:
    """A page with JavaScript, for tests in a file whose other tests use pages without."""
    with shared_windows.use(width, scripts=True) as window:
        yield window.page


@pytest.fixture
def plain(shared_windows: SharedWindows, width: int) -> Iterator[Page]:
    """A page without JavaScript, for tests in a file whose other tests use pages with it."""
    with shared_windows.use(width, scripts=False) as window:
        yield window.page


def open_signed_in(page: Page, server: Server, login: str, path: str = "/account") -> None:
    """Opens a page with a new session, for tests about something else than the sign-in page."""
    with fresh_browser(server, login) as browser:
        cookies = [(cookie.name, cookie.value or "") for cookie in browser.http.cookies.jar]
    page.context.add_cookies([{"name": name, "value": value, "url": server.base_url} for name, value in cookies])
    page.goto(server.base_url + path)


def set_width(page: Page, width: int) -> None:
    if not page.viewport_size or page.viewport_size["width"] != width:
        page.set_viewport_size({"width": width, "height": HEIGHT})


def assert_fits(page: Page, min_button: int = 44, within: str = "body") -> None:
    """Asserts that there is no horizontal scrolling and that buttons are large enough to tap."""
    scroll_width, width, buttons = page.evaluate(_MEASURE, within)
    assert scroll_width <= width
    assert [button for button in buttons if button[1] < min_button] == []


# One script instead of a message for each button, which would take longer than the rest of a test.
_MEASURE = """within => [
    document.documentElement.scrollWidth, innerWidth,
    [...document.querySelector(within).querySelectorAll("button, a.button")]
        .filter(element => element.checkVisibility({visibilityProperty: true}) && element.offsetWidth > 0)
        .map(element => [element.innerText, element.getBoundingClientRect().height]),
]"""


def assert_accessible(page: Page, within: str = "html" if LONG else "main") -> None:
    """Asserts that axe-core finds nothing serious and no gap in the headings of an element, and that there is a title.

    Around their main part, all pages are the same: a usual run looks at the whole of a few pages. The light and the
    dark theme differ in their colours only: some pages have the one and some the other here. With SSO_TEST_ROUNDS,
    each page has both.
    """
    title = page.title()
    assert title
    is_dark = zlib.crc32(title.encode()) % 2 == 1  # the same in each run
    if LONG or not is_dark:
        _assert_no_violations(page, within)
    if LONG or is_dark:
        page.emulate_media(color_scheme="dark")
        _assert_no_violations(page, within)
        page.emulate_media(color_scheme="light")


def _assert_no_violations(page: Page, within: str) -> None:
    report = page.evaluate(_RUN_AXE, within)
    found = [
        (item["id"], [node["html"] for node in item["nodes"]])
        for item in report
        if item["impact"] in ("serious", "critical") or item["id"] == "heading-order"
    ]
    assert found == []


# Each page has the function, so that its text is sent to the browser once and not for each page.
_LOAD_AXE = f"globalThis.loadAxe = () => {{ {AXE_SCRIPT}\n}}"
# Rules whose findings are not serious, and frames, in which axe-core does not run, would take time for nothing.
_RUN_AXE = """within => {
    if (typeof axe === "undefined") loadAxe();
    const ignored = axe._audit.rules.filter(
        rule => ["minor", "moderate"].includes(rule.impact) && rule.id !== "heading-order"
    );
    const rules = Object.fromEntries(ignored.map(rule => [rule.id, {enabled: false}]));
    const options = {resultTypes: ["violations"], preload: false, iframes: false, rules};
    return axe.run(within, options).then(report => report.violations);
}"""


class _SitePage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._show("Back at the site")

    def do_POST(self) -> None:
        """Shows the names of the fields, so that a test sees that they arrived."""
        fields = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._show(f"Received {' '.join(sorted(fields))}")

    def _show(self, heading: str) -> None:
        body = f"<!doctype html><title>Back</title><h1>{heading}</h1>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


@pytest.fixture(scope="module")
def callback() -> Iterator[str]:
    """The redirect URI of a site, which shows a page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _SitePage)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/cb"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def screenshot(page: Page, width: int) -> Screenshot:
    """Asserts that the page fits into the window, in a long run also into another, and takes pictures if wanted."""

    def take(name: str) -> None:
        for size in (*({DESKTOP, PHONE} - {width} if LONG or PICTURES else ()), width):
            set_width(page, size)
            if PICTURES:
                take_pictures(page, f"{name}-{size}")
            assert_fits(page)

    return take


def take_pictures(page: Page, name: str) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.screenshot(path=Path(str(PICTURES)) / f"{name}-{scheme}.png", full_page=True)
    page.emulate_media(color_scheme="light")
