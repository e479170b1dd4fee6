"""A real browser. Its driver wants an asyncio of the ordinary kind, which the service's own imports have replaced, and
keeps a loop running in its thread: so it has a thread of its own, and the tests of this folder run there."""

import asyncio
import shutil
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    # The tests are the only site that asks for something on this machine, and want to see our own refusal.
    "--disable-features=LocalNetworkAccessChecks",
)  # fmt: skip
HEIGHT = 844
# A refusal has its status, and who clicks quickly leaves a page before its picture has come. Chromium looks for user
# names in a page that is half read if it comes quickly enough after another; what pages hold is tested by itself.
EXPECTED = (
    "Failed to load resource: the server responded with a status of 4",
    "net::ERR_ABORTED",
    "[DOM] Password forms should have (optionally hidden) username fields",
)
_thread = ThreadPoolExecutor(1, thread_name_prefix="chromium")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if "page" not in pyfuncitem.fixturenames:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    _thread.submit(pyfuncitem.obj, **arguments).result()
    return True


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed: nothing is tried in a real browser")
    driver, browser = _thread.submit(_start, path).result()
    yield browser
    _thread.submit(browser.close).result()
    _thread.submit(driver.stop).result()


def _start(path: str) -> tuple[Playwright, Browser]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of policies; where they are gone, so is the need
        asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
    driver = sync_playwright().start()
    return driver, driver.chromium.launch(executable_path=path, args=ARGUMENTS)


class Window:
    """One profile: cookies of its own. Whatever the browser complains about is kept."""

    def __init__(self, chromium: Browser, **options: Any) -> None:
        self.complaints: list[str] = []
        self.context: BrowserContext = chromium.new_context(**options)
        self.context.set_default_timeout(15_000)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda message: self._note(message.text))
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("requestfailed", lambda request: self._note(f"{request.failure} {request.url}"))

    def _note(self, text: str) -> None:
        if not text.startswith(EXPECTED):
            self.complaints.append(text)


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def window(chromium: Browser, width: int) -> Iterator[Window]:
    """Without JavaScript: the pages need none."""
    size = {"width": width, "height": HEIGHT}
    window = _thread.submit(Window, chromium, viewport=size, java_script_enabled=False).result()
    yield window
    _thread.submit(window.context.close).result()
    assert window.complaints == []


@pytest.fixture
def page(window: Window) -> Page:
    return window.page
