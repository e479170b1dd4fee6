"""The form of a group: its conditions and the users who were added."""

from typing import Any

from sso.console.condition_fields import read_condition
from sso.console.users.form import split_list
from sso.console.visit import ConsoleVisit
from sso.core.ids import is_user_id
from sso.perm.input.condition_notation import condition_text
from sso.perm.input.groups import MAX_CONDITIONS
from sso.web.body import InvalidBody


def condition_rows(form: dict[str, str] | None, group: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the titles and texts of the conditions, with an empty row for a new one."""
    if form is None:
        rows = [(item["title"], condition_text(item["condition"])) for item in group["conditions"]]
    else:
        rows = [row for row in _typed_rows(form) if any(row)]
    return [*rows, ("", "")]


def read_conditions(form: dict[str, str]) -> list[dict[str, Any]]:
    """Returns the conditions, unchecked. A row without a title and text is left out, so that it can be removed."""
    return [
        {"title": title or f"Condition {number}", "condition": read_condition(text, f"condition {number}")}
        for number, (title, text) in enumerate(_typed_rows(form), 1)
        if title or text
    ]


def _typed_rows(form: dict[str, str]) -> list[tuple[str, str]]:
    numbers = range(1, MAX_CONDITIONS + 2)
    return [
        (form.get(f"title_{number}", "").strip(), form.get(f"condition_{number}", "").strip())
        for number in numbers
        if f"condition_{number}" in form
    ]


async def read_users(visit: ConsoleVisit, text: str) -> list[str]:
    """Returns the ids of users who are named by id or by e-mail address."""
    return [name if is_user_id(name) else await find_user_id(visit, name, "users") for name in split_list(text)]


async def find_user_id(visit: ConsoleVisit, login: str, field: str) -> str:
    """Raises InvalidBody if there is no such user, or the administrator may not see users."""
    if not visit.may("GET", "/users"):
        raise InvalidBody(f"{field}: without the right to see users, give user ids")
    found = await visit.data("GET", "/users", query={"search": login, "limit": "10"})
    user_ids = [str(user["user_id"]) for user in found if user["login"].casefold() == login.casefold()]
    if not user_ids:
        raise InvalidBody(f"{field}: there is no user {login}")
    return user_ids[0]
