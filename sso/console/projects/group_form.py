"""The form of a group: its conditions and the users who were added."""

from typing import Any

from sso.console.json_fields import read_condition
from sso.console.user_lookup import find_user_id
from sso.console.users.form import split_list
from sso.console.visit import ConsoleVisit
from sso.perm.input.condition_notation import condition_text
from sso.perm.input.groups import MAX_CONDITIONS


def condition_rows(form: dict[str, str] | None, group: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the titles and texts of the conditions, with an empty row for a new one."""
    if form is None:
        rows = [(item["title"], condition_text(item["condition"])) for item in group["conditions"]]
    else:
        rows = [row for row in _typed_rows(form) if any(row)]
    return [*rows, ("", "")]


def read_conditions(form: dict[str, str]) -> list[dict[str, Any]]:
    """Returns the conditions, unchecked. A row without a title and text is left out, so that it can be removed."""
    conditions = []
    for index, (title, text) in enumerate(_typed_rows(form)):
        if title or text:
            condition = read_condition(text, "conditions", index, "condition")
            conditions.append({"title": title or f"Condition {index + 1}", "condition": condition})
    return conditions


def _typed_rows(form: dict[str, str]) -> list[tuple[str, str]]:
    numbers = range(1, MAX_CONDITIONS + 2)
    return [
        (form.get(f"title_{number}", "").strip(), form.get(f"condition_{number}", "").strip())
        for number in numbers
        if f"condition_{number}" in form
    ]


async def read_users(visit: ConsoleVisit, text: str) -> list[str]:
    """Returns the ids of users who are named by id or by e-mail address."""
    return [await find_user_id(visit, name, "users") for name in split_list(text)]
