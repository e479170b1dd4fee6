"""Looks at every page of the built site with axe-core, light and dark: scripts/check runs it.

Needs Chromium, and axe-core and Playwright from the packages of the developers.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.sync_api import Page, sync_playwright

from tests.kit.chromium import MISSING, find_chromium, launch_chromium

SITE = Path(__file__).parents[2] / "sso" / "documentation" / "site"
# What a page has many times is alike, so the first ones are enough: rows of a table, paragraphs, lines of code, tables.
# The navigation is the same on each page: only the start page keeps it. A page would take seconds otherwise.
_SHORTEN = """isStart => {
    const repeated = ['tbody tr:nth-child(n+4)', 'section > p:nth-of-type(n+4)', 'li:nth-child(n+6)'];
    const remove = element => element.remove();
    document.querySelectorAll([...repeated, ...(isStart ? [] : ['.sidebar-drawer'])]).forEach(remove);
    for (const block of ['div.highlight', 'table'])
        [...document.querySelectorAll(block)].slice(4).forEach(remove);
}"""
_RUN = """rules => axe.run(
    document, {resultTypes: ['violations'], preload: false, ...(rules.length ? {runOnly: rules} : {})}
).then(report => report.violations.map(({id, help, nodes}) => [id, help, nodes.length, nodes[0].html.slice(0, 160)]))"""


def violations(site: Path, program: str) -> Iterator[str]:
    with sync_playwright() as driver, launch_chromium(driver, program) as browser:
        page = browser.new_page()
        for path in sorted(site.rglob("*.html")):
            page.goto(f"{path.as_uri()}?q=role" if path.stem == "search" else path.as_uri())
            page.evaluate(_SHORTEN, path == site / "index.html")
            page.evaluate(AXE_SCRIPT)
            yield from (f"{path.relative_to(site)}: {found}" for found in _violations(page))


def _violations(page: Page) -> Iterator[str]:
    """The themes differ in their colours only."""
    schemes: dict[Literal["light", "dark"], list[str]] = {"light": [], "dark": ["color-contrast"]}
    for scheme, rules in schemes.items():
        page.emulate_media(color_scheme=scheme)
        for rule, advice, count, first in page.evaluate(_RUN, rules):
            yield f"{scheme}: {rule}: {advice}: {first} ({count} elements)"


def main() -> None:
    program = find_chromium()
    if program is None:
        print(f"axe was not run: {MISSING}", file=sys.stderr)
        return
    if problems := [*violations(SITE, program)]:
        sys.exit("\n".join(problems))
    print(f"axe found nothing in {len([*SITE.rglob('*.html')])} pages, light and dark", file=sys.stderr)


if __name__ == "__main__":
    main()
