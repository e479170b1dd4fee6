"""Suggestions for the values of conditions while they are typed, as options of a list."""

from typing import Any

from quart import Blueprint, Response, request

from sso.console.list_pages import Record
from sso.console.sections import USERS
from sso.console.user_lookup import names_in_conditions
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit

SUGGESTIONS = "/conditions/suggestions"
MAX_USERS = 10


def suggestion_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/suggestions")
    async def suggest() -> Response:
        visit = await console.open(USERS)
        member, search = request.args.get("member", ""), request.args.get("search", "")
        options = await _users(visit, search) if member == "uid" else (await suggestions(visit, search)).get(member, [])
        return await console.show(visit, "_suggestions.html", title="", options=options)


async def suggestions(visit: ConsoleVisit, search: str = "") -> Record:
    """Returns values by the member of a condition; none if the administrator may not see users."""
    if not visit.may("GET", SUGGESTIONS):
        return {}
    found: Record = await visit.data("GET", SUGGESTIONS, query={"search": search})
    return found


async def condition_page(visit: ConsoleVisit, conditions: list[Any]) -> Record:
    """Returns the values of a page with conditions: suggestions, and the names of the users whom they name."""
    return {"suggestions": await suggestions(visit), "user_names": await names_in_conditions(visit, conditions)}


async def _users(visit: ConsoleVisit, search: str) -> list[str]:
    if not search:
        return []
    users = await visit.data("GET", "/users", query={"search": search, "limit": str(MAX_USERS)})
    return [user["login"] or user["user_id"] for user in users]
