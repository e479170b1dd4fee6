"""The first page of the console."""

from quart import Blueprint, Response

from sso.console.sections import OVERVIEW
from sso.console.view import ConsoleView
from sso.core.errors import NotFound


def overview_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(OVERVIEW)

    @routes.get("")
    async def show() -> Response:
        visit = await console.open(OVERVIEW)
        return await console.show(visit, "overview/page.html", title="Overview")

    @routes.get("/<path:unknown>")
    async def unknown_page(unknown: str) -> Response:
        await console.open(OVERVIEW)
        raise NotFound("There is no such page in the console.")

    return routes
