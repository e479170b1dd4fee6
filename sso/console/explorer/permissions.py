"""The effective permissions of a user at an application at a moment, as the explorer shows them."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sso.admin.user_details import EVERY_RULE
from sso.console.explorer.query import moment_text, read_moment
from sso.console.explorer.reasons import ReasonLine, ReasonPages
from sso.console.form_error import FormError
from sso.console.record_names import user_name
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.core.ids import is_user_id
from sso.perm.engine.explanation.text import end_text, params_text
from sso.perm.engine.reserved_names import PROJECT_ACCESS
from sso.web.request import parse_in_thread

USER = "/users/<user_id>"
PERMISSIONS = f"{USER}/permissions"
FEW_RULES = 200  # working with more takes more than a few milliseconds
_PROJECT_PREFIX = f"private_data.{PROJECT_ACCESS}."

T = TypeVar("T")


class CannotExplore(Exception):
    """The permissions cannot be shown."""

    def __init__(self, error: FormError) -> None:
        self.error = error


class ReasonedRule(Struct, frozen=True):
    """A rule that the user has. ``extra``: its parameters and its end, as a text."""

    name: str
    extra: str
    reasons: tuple[ReasonLine, ...]

    @property
    def project(self) -> str:
        """The project that the rule is about, or ""."""
        return self.name.removeprefix(_PROJECT_PREFIX).partition(".")[0] if is_project_rule(self.name) else ""


class UserPermissions(Struct, frozen=True):
    user_id: str
    user: str  # the login, or the id for administrators who may not see users
    moment: str
    rules: dict[str, ReasonedRule]
    roles: tuple[str, ...]
    explained: dict[str, Any]  # the rule that was asked for; empty if there is none
    explanation: tuple[ReasonLine, ...]

    @property
    def projects(self) -> set[str]:
        return {rule.project for rule in self.rules.values()} - {""}

    @property
    def explained_extra(self) -> str:
        return rule_extra(self.explained)


def is_project_rule(name: str) -> bool:
    return name.startswith(_PROJECT_PREFIX)


async def read_permissions(
    visit: ConsoleVisit, user: str, application_id: str, at: str, rule: str, prefix: str = ""
) -> UserPermissions:
    """Reads one side of the explorer. ``prefix`` is that of the form fields of the side, for errors."""
    try:
        moment = read_moment(at, f"{prefix}at")
    except FieldError as error:
        raise CannotExplore(FormError.of(error)) from None
    user_id, login = await _find_user(visit, user, f"{prefix}user")
    query = {"application_id": application_id, "at": "" if moment is None else str(moment)}
    try:
        explained = await _explain(visit, user_id, query, EVERY_RULE)
        roles = await visit.data("GET", PERMISSIONS, user_id=user_id, query={**query, "type": "roles"})
        asked = await _explain(visit, user_id, query, rule) if rule else {}
    except ApiError as error:
        raise CannotExplore(_of_side(FormError.of(error), prefix)) from None
    pages = ReasonPages.of(visit, application_id, user_id)
    rules = await compute(len(explained), partial(_reasoned, explained, pages))
    explanation = pages.lines(asked) if asked else ()
    return UserPermissions(user_id, login, moment_text(moment), rules, tuple(roles), asked, explanation)


def _reasoned(explained: dict[str, Any], pages: ReasonPages) -> dict[str, ReasonedRule]:
    return {name: ReasonedRule(name, rule_extra(one), pages.lines(one)) for name, one in sorted(explained.items())}


async def compute(rules: int, work: Callable[[], T]) -> T:
    """Returns ``work()``, which is about so many rules. With many, it is called in a thread."""
    return await parse_in_thread(work) if rules > FEW_RULES else work()


async def _explain(visit: ConsoleVisit, user_id: str, query: dict[str, str], rule: str) -> dict[str, Any]:
    found = await visit.call("GET", PERMISSIONS, user_id=user_id, query={**query, "explain": rule})
    explained: dict[str, Any] = found.members["explain"]
    return explained


async def _find_user(visit: ConsoleVisit, text: str, field_name: str) -> tuple[str, str]:
    """Returns the id and the name of the user. Administrators who may not see users give an id."""
    if not visit.may("GET", USER):
        if not is_user_id(text):
            raise CannotExplore(FormError("expected a user id", field=field_name))
        return text, text
    if is_user_id(text):
        try:
            return text, user_name(await visit.data("GET", USER, user_id=text))
        except ApiError as error:
            raise CannotExplore(FormError(error.message, 404, field_name)) from None
    try:
        found = await visit.data("GET", "/users", query={"login": text})
    except ApiError as error:
        raise CannotExplore(FormError(error.message, field=field_name)) from None
    if not found:
        raise CannotExplore(FormError("No user has this e-mail address or id.", 404, field_name))
    return found[0]["user_id"], found[0]["login"]


def _of_side(error: FormError, prefix: str) -> FormError:
    """Returns the error at the field of the form. ``explain`` is what the management API calls the rule."""
    names = {"at": f"{prefix}at", "explain": "rule"}
    return replace(error, field=names.get(error.field, error.field))


def rule_extra(explained: dict[str, Any]) -> str:
    return (params_text(explained) + end_text(explained)).lstrip(" ,") if explained else ""
