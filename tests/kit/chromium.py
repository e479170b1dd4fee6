"""A real browser. Playwright runs in a thread, because trio_asyncio replaces the asyncio policy of this process."""

import asyncio
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from playwright.sync_api import Page, sync_playwright

T = TypeVar("T")
CHROMIUM = shutil.which("chromium")
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}


def with_page(work: Callable[[Page], T], size: str = "wide") -> T:
    """Runs ``work`` with an empty page of a new browser."""

    def run() -> T:
        asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
        width, height = SIZES[size]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            try:
                return work(browser.new_page(viewport={"width": width, "height": height}))
            finally:
                browser.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()
