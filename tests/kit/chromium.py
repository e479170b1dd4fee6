"""Chromium for browser tests, checks of pages and screenshots."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from playwright.sync_api import Browser, Error, Playwright

# The shell has the engine of the browser without its windows and services, and needs half of the processor time.
_PROGRAMS = (
    "chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable",
)  # fmt: skip
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--in-process-gpu", "--no-first-run", "--disable-background-networking")
_STARTS = 3
MISSING = "Chromium is not installed: apt-get install chromium-headless-shell (or chromium)"


def find_chromium() -> str | None:
    """Returns the path of the program, None if there is none."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


def launch_chromium(driver: Playwright, program: str, arguments: Sequence[str] = ()) -> Browser:
    """Starts Chromium. Its process crashes at the start once in some hundred times, so this tries again."""
    launch = partial(driver.chromium.launch, executable_path=program, args=[*_ARGUMENTS, *arguments])
    for _ in range(_STARTS - 1):
        with suppress(Error):
            return launch()
    return launch()
