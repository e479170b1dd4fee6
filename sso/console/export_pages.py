"""The CSV file of a list of the console."""

from collections.abc import Sequence

from quart import Blueprint, Response, request

from sso.console.lists import exported_pages
from sso.console.sections import ConsoleSection
from sso.console.user_lookup import find_user_id
from sso.console.view import ConsoleView
from sso.web.csv_response import streamed_csv_response


def add_export(
    console: ConsoleView,
    routes: Blueprint,
    section: ConsoleSection,
    path: str,
    columns: Sequence[str],
    filters: Sequence[str] = ("search",),
) -> None:
    """Adds the page ``export.csv`` with the records of the list ``path`` of the management API."""

    @routes.get("/export.csv")
    async def export() -> Response:
        visit = await console.open_export(section)
        query = {name: request.args.get(name, "").strip() for name in filters}
        if user := query.get("user_id"):
            query["user_id"] = await find_user_id(visit, user, "user_id")
        pages = exported_pages(visit, path, query)
        return await streamed_csv_response(path.strip("/"), columns, pages)
