"""The tab with the bans of a user: the list, the form that bans, and the button that lifts one."""

from datetime import UTC, datetime
from typing import Any

from quart import Blueprint, Response

from sso.console.form_pages import Action, Form, FormPage, add_actions, add_form
from sso.console.form_values import read_number
from sso.console.list_pages import Record, Variables
from sso.console.record_names import RecordNames
from sso.console.sections import USERS
from sso.console.users.detail_pages import EVERYTHING, USER, frame_of, path_of
from sso.console.users.role_pages import choices_of
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.field_errors import FieldError

BANS, BAN = f"{USER}/bans", f"{USER}/bans/<ban_id>"


def user_ban_pages(console: ConsoleView, routes: Blueprint) -> None:
    async def show(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any) -> Response:
        user = await visit.data("GET", USER, **variables)
        bans = await visit.data("GET", BANS, query=EVERYTHING, **variables)
        scopes = [item["scope"] for item in bans if item["scope"] != "all"]
        names = await visit.names(
            {
                "application": [scope.get("application_id") for scope in scopes],
                "project": [scope.get("project_id") for scope in scopes],
                "user": [item["author"] for item in bans],
            }
        )
        return await console.show(
            visit,
            "users/bans.html",
            **frame_of(user, "bans"),
            bans=[{**item, "where": _where(item["scope"], names), "ends": _moment(item["until"])} for item in bans],
            names=names,
            choices=await _choices(visit),
            values=form or {},
            **problem,
        )

    add_form(
        console,
        routes,
        FormPage(USERS, "/<user_id>/bans", "POST", BANS, _body, show, "user-banned", lambda _, v: _page(v), opens=True),
    )
    add_actions(console, routes, USERS, Action("/<user_id>/bans/<ban_id>/lift", "DELETE", BAN, "user-unbanned", _page))


async def _choices(visit: ConsoleVisit) -> list[tuple[str, str]]:
    """Returns the scopes that can be chosen, as many as a list can show."""
    projects = await choices_of(visit, "/projects", "id", "display_name", "title")
    applications = await choices_of(visit, "/applications", "application_id", "name")
    return [
        ("all", "Everywhere"),
        *((f"project:{key}", f"Project {name}") for key, name in projects),
        *((f"application:{key}", f"Application {name}") for key, name in applications),
    ]


def _where(scope: Any, names: RecordNames) -> str:
    if scope == "all":
        return "Everywhere"
    kind = "project" if "project_id" in scope else "application"
    return f"{kind.capitalize()} {names.of(kind, scope[f'{kind}_id']).text}"


def _body(form: Form, _variables: Variables) -> Record:
    kind, _, record_id = form.get("scope", "").partition(":")
    scope: Any = {"project_id": record_id} if kind == "project" else form.get("scope", "")
    if kind == "application":
        scope = {"application_id": read_number(record_id)}
    texts = {name: " ".join(form.get(name, "").split()) for name in ("reason", "note")}
    return {"scope": scope, "until": _until(form.get("until", "").strip()), **texts}


def _until(text: str) -> int | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FieldError(("until",), "must be a date and a time, such as 2030-01-31 12:00") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _moment(until: int | None) -> str:
    return datetime.fromtimestamp(until, UTC).isoformat() if until else ""


def _page(variables: Variables) -> str:
    return f"{path_of(variables['user_id'])}/bans"
