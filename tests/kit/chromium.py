"""A real browser. Playwright speaks asyncio, which trio_asyncio has taken over in this process: hence the thread."""

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
    """Run ``work`` with an empty page of a fresh browser."""

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
