"""The roles that a user was given, at applications and in projects. Their editors are in these sections."""

from quart import Blueprint, Response

from sso.console.projects.frame import MAX_CHOICES
from sso.console.projects.member_pages import role_rows
from sso.console.role_rows import RoleRow
from sso.console.sections import USERS
from sso.console.users.detail_pages import USER, frame_of
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit


def user_role_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<user_id>/roles")
    async def show_roles(user_id: str) -> Response:
        visit = await console.open(USERS)
        user = await visit.data("GET", USER, user_id=user_id)
        given = await visit.data("GET", f"{USER}/assignments", user_id=user_id)
        return await console.show(
            visit,
            "users/roles.html",
            **frame_of(user, "roles"),
            applications=[
                {**item, "rows": [RoleRow.of(role) for role in item["roles"]]} for item in given["applications"]
            ],
            projects=[{**item, "rows": role_rows(item["roles"])} for item in given["projects"]],
            choices={
                "applications": await choices_of(visit, "/applications", "application_id", "name"),
                "projects": await choices_of(visit, "/projects", "id", "display_name", "title"),
            },
        )


async def choices_of(visit: ConsoleVisit, path: str, key: str, *names: str) -> list[tuple[str, str]]:
    """Returns the ids and names of the first records; none if the administrator may not see them.

    The name is the first of ``names`` that a record has.
    """
    if not visit.may("GET", path):
        return []
    records = await visit.data("GET", path, query={"limit": str(MAX_CHOICES)})
    return [(str(record[key]), f"{next(filter(None, map(record.get, names)))} ({record[key]})") for record in records]
