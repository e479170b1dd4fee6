"""The application of a question: found by its id or name, suggested by the form, and named on the page."""

from contextlib import suppress
from typing import Any

from sso.console.explorer.permissions import CannotExplore
from sso.console.form_error import FormError
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.perm.engine.reserved_names import is_application_key

MAX_CHOICES = 50  # applications that the form suggests
DEFAULT_APPLICATION = "1"


async def find_application(visit: ConsoleVisit, text: str) -> str:
    """Returns the id of an application by its id or name."""
    if not text or is_application_key(text):
        return text or DEFAULT_APPLICATION
    if visit.may("GET", "/applications"):
        try:
            found = await visit.data("GET", "/applications", query={"search": text})
        except ApiError as error:
            raise CannotExplore(FormError(error.message, field="application_id")) from None
        for one in found:
            if one["name"].casefold() == text.casefold():
                return str(one["application_id"])
    raise CannotExplore(FormError("No application has this id or name.", 404, "application_id"))


async def application_choices(visit: ConsoleVisit) -> list[dict[str, Any]]:
    if not visit.may("GET", "/applications"):
        return []
    found: list[dict[str, Any]] = await visit.data("GET", "/applications", query={"limit": str(MAX_CHOICES)})
    return found


async def application_name(visit: ConsoleVisit, application_id: str) -> str:
    if visit.may("GET", "/applications"):
        with suppress(ApiError):  # it is unknown, or hidden from the administrator
            found = await visit.data("GET", "/applications/<application_id>", application_id=application_id)
            return str(found["name"])
    return f"application {application_id}"
