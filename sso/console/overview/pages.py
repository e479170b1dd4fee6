"""The first page of the console: figures for those who may see them, and what else the administrator can do."""

from typing import Any

from quart import Blueprint, Response, request

from sso.console.overview.figures import charts, funnel, totals
from sso.console.sections import OVERVIEW
from sso.console.view import ConsoleView
from sso.core.errors import NotFound

DAYS = {"1": "today", "7": "7 days", "30": "30 days"}


def overview_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(OVERVIEW)

    @routes.get("")
    async def show() -> Response:
        visit = await console.open(OVERVIEW)
        days = request.args.get("days", "7")
        context: dict[str, Any] = {"days": days if days in DAYS else "7", "choices": DAYS}
        if visit.may("GET", "/figures"):
            figures = await visit.data("GET", "/figures", query={"days": context["days"]})
            context |= {
                "charts": charts(figures),
                "funnel": funnel(figures["funnel"]),
                "totals": totals(figures["totals"]),
                "is_new": not (figures["totals"]["projects"] or figures["totals"]["oauth_clients"]),
            }
        return await console.show(visit, "overview/page.html", title="Overview", **context)

    @routes.get("/<path:unknown>")
    async def unknown_page(unknown: str) -> Response:
        await console.open(OVERVIEW)
        raise NotFound("There is no such page in the console.")

    return routes
