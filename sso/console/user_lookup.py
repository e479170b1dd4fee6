"""Users in fields of forms and filters, who are named by e-mail address (the login) or by id."""

from collections.abc import Iterator, Mapping
from typing import Any

from sso.console.record_names import RecordNames
from sso.console.visit import ConsoleVisit
from sso.core.field_errors import FieldError
from sso.core.ids import is_user_id

MAX_LOGINS = 50  # in a condition: each is looked up


async def find_user_id(visit: ConsoleVisit, name: str, field: str) -> str:
    """Returns the id of a user. An id is returned as it is, without a look whether there is such a user.

    Raises FieldError if no user has this e-mail address, or the administrator may not see users.
    """
    if is_user_id(name):
        return name
    if not visit.may("GET", "/users"):
        raise FieldError((field,), "give a user id; can_view_users is required to find users by e-mail address")
    found = await visit.data("GET", "/users", query={"login": name})
    if not found:
        raise FieldError((field,), f"there is no user {name}")
    return str(found[0]["user_id"])


async def with_user_ids(visit: ConsoleVisit, condition: Any, field: str) -> Any:
    """Returns a condition with the ids of the users whom it names by e-mail address. Raises FieldError."""
    logins = {name for name in _named_users(condition) if "@" in name}
    if len(logins) > MAX_LOGINS:
        raise FieldError((field,), f"names at most {MAX_LOGINS} users by e-mail address; give the ids of more")
    return _replaced(condition, {login: await find_user_id(visit, login, field) for login in sorted(logins)})


async def names_in_conditions(visit: ConsoleVisit, conditions: list[Any]) -> RecordNames:
    """Returns the names of the users whom conditions name by id."""
    return await visit.names({"user": _named_users(conditions)})


def _named_users(condition: Any) -> Iterator[str]:
    """The names in all lists of users of a condition, which is not checked yet."""
    parts = condition if isinstance(condition, list) else condition.values() if isinstance(condition, dict) else ()
    if isinstance(condition, dict) and isinstance(condition.get("uid"), list):
        yield from (name for name in condition["uid"] if isinstance(name, str))
    for part in parts:
        yield from _named_users(part)


def _replaced(condition: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(condition, list):
        return [_replaced(part, ids) for part in condition]
    if not isinstance(condition, dict):
        return condition
    return {
        member: [ids.get(name, name) if isinstance(name, str) else name for name in value]
        if member == "uid" and isinstance(value, list)
        else _replaced(value, ids)
        for member, value in condition.items()
    }
