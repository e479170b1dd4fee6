"""The page that makes a link with which an administrator opens the account of a player."""

from typing import Any

from quart import Blueprint, Response

from sso.accounts.impersonation.operations import LINK_S, MAX_MINUTES
from sso.admin.request import AdminResponse
from sso.console.form_pages import Form, FormPage, add_form
from sso.console.form_values import read_number
from sso.console.list_pages import Record, Variables
from sso.console.sections import USERS
from sso.console.users.detail_pages import USER, frame_of
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit

IMPERSONATE = f"{USER}/impersonate"


def user_impersonation_pages(console: ConsoleView, routes: Blueprint) -> None:
    async def show(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **values: Any) -> Response:
        visit.require("POST", IMPERSONATE)
        user = await visit.data("GET", USER, **variables)
        names = {**frame_of(user, "impersonate"), "values": form or {}, "max_minutes": MAX_MINUTES, "link_s": LINK_S}
        return await console.show(visit, "users/impersonate.html", **names, **values)

    async def show_link(visit: ConsoleVisit, found: AdminResponse, variables: Variables, _: Form) -> Response:
        """The link is shown once."""
        return await show(visit, variables, None, url=found.members["url"])

    page = FormPage(
        USERS, "/<user_id>/impersonate", "POST", IMPERSONATE, _body, show, result=show_link, recent="always", opens=True
    )
    add_form(console, routes, page)


def _body(form: Form, _variables: Variables) -> Record:
    return {
        "reason": " ".join(form.get("reason", "").split()),
        "minutes": read_number(form.get("minutes", "").strip()),
        "writes": "writes" in form,
    }
