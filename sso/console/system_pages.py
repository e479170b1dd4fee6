"""The page about the installation, with the findings of ``sso doctor``.

They are loaded after the rest, because the checks take a second or two. They run in a thread.
"""

from collections.abc import Callable

import trio
from quart import Blueprint, Response, request

from sso.console.sections import SYSTEM
from sso.console.view import ConsoleView
from sso.core.findings import Report

MAX_AGE_S = 30.0


class InstallationFindings:
    def __init__(self, check: Callable[[], Report]) -> None:
        self._check = check
        self._lock = trio.Lock()  # one check at a time, whatever the number of administrators
        self._report: Report | None = None
        self._checked_at = 0.0

    async def get(self) -> Report:
        """Returns the findings, which are at most ``MAX_AGE_S`` old."""
        async with self._lock:
            if self._report is None or trio.current_time() - self._checked_at >= MAX_AGE_S:
                self._report = await trio.to_thread.run_sync(self._check)
                self._checked_at = trio.current_time()
            return self._report


def system_pages(console: ConsoleView, findings: InstallationFindings) -> Blueprint:
    routes = console.blueprint(SYSTEM)

    @routes.get("")
    async def show() -> Response:
        visit = await console.open(SYSTEM)
        system = await visit.data("GET", "/system")
        return await console.show(visit, "system/page.html", title="System", system=system)

    @routes.get("/findings")
    async def show_findings() -> Response:
        visit = await console.open(SYSTEM)
        visit.require("GET", "/system")
        is_part = bool(request.headers.get("HX-Request"))
        template = "system/_findings.html" if is_part else "system/findings.html"
        return await console.show(visit, template, title="Findings", report=await findings.get())

    return routes
