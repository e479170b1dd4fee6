"""The page about the installation. Its findings are loaded after the rest, because the checks take a moment."""

from quart import Blueprint, Response, request

from sso.console.sections import SYSTEM
from sso.console.system.findings import InstallationFindings
from sso.console.view import ConsoleView


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
        return await console.show(visit, template, title="Findings", findings=await findings.get())

    return routes
