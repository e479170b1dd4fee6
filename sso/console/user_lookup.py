"""Users in fields of forms and filters, who are named by e-mail address (the login) or by id."""

from sso.console.visit import ConsoleVisit
from sso.core.field_errors import FieldError
from sso.core.ids import is_user_id


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
