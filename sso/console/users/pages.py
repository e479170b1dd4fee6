"""The list of users, the forms that create and invite users."""

from typing import Any

from quart import Blueprint, Response, request

from sso.admin.request import AdminResponse
from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion
from sso.console.form_pages import Form, FormPage, add_form, new_record
from sso.console.form_values import read_number
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.listing import FilterChoice
from sso.console.lists import read_all
from sso.console.record_names import user_name
from sso.console.sections import USERS
from sso.console.users.form import changed_fields, typed_fields
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import NotFound
from sso.core.language_names import NAMES

FILTERS = (
    FilterChoice(
        "status",
        "Status",
        (("active", "Active"), ("disabled", "Disabled"), ("closed", "Will be deleted"), ("banned", "Banned")),
    ),
    FilterChoice("verified", "E-mail address", (("1", "Verified"), ("0", "Not verified"))),
    FilterChoice("two_step", "Two-step sign-in", (("1", "On"), ("0", "Off"))),
    FilterChoice("administrator", "Administrators", (("1", "Only administrators"),)),
)
INVITATION = "/invitations/<invitation_id>"
MAX_INVITATIONS = 1000
CSV_COLUMNS = (
    "user_id", "login", "nick", "country", "lang", "level", "tags", "purchases", "email_verified", "second_factors",
    "disabled", "banned", "reg_time", "deletion_due", "deletion_by",
)  # fmt: skip


def user_list_pages(console: ConsoleView, *, can_invite: bool) -> Blueprint:
    routes = console.blueprint(USERS)
    users = ListPage(
        USERS,
        "/users",
        "users",
        "users/list.html",
        CSV_COLUMNS,
        choices=FILTERS,
        default_sort="login",
        page=_list_values,
        row=lambda _visit, user: {**user, "name": user_name(user)},
    )
    add_list(console, routes, users)

    async def show_new(visit: ConsoleVisit, _: Variables, form: Form | None, /, **problem: Any) -> Response:
        visit.require("POST", "/users")
        values = changed_fields(form or {})
        return await console.show(visit, "users/new.html", title="Add user", values=values, languages=NAMES, **problem)

    add_form(
        console,
        routes,
        FormPage(
            USERS,
            "/new",
            "POST",
            "/users",
            lambda form, _: {name: value for name, value in typed_fields(form).items() if value},
            show_new,
            "user-created",
            lambda user, _: f"{USERS.path}/{user['user_id']}",
            opens=True,
        ),
    )
    invitation_pages(console, routes, can_invite=can_invite)
    return routes


def invitation_pages(console: ConsoleView, routes: Blueprint, *, can_invite: bool) -> None:
    async def page(_visit: ConsoleVisit, _variables: Variables) -> Record:
        return {"title": "Invitations", "created": None}

    async def form_values(_visit: ConsoleVisit, _variables: Variables) -> Record:
        return {
            "crumbs": [(f"{USERS.path}/invitations", "Invitations")],
            "languages": NAMES,
            "can_invite": can_invite,
            "values": {"login": request.args.get("login", "")},
        }

    invitations = ListPage(
        USERS, "/invitations", "invitations", "users/invitations.html", filters=(), path="/invitations", page=page
    )
    show_list = add_list(console, routes, invitations)

    async def show_link(visit: ConsoleVisit, found: AdminResponse, variables: Variables, _: Form) -> Response:
        return await show_list(visit, variables, created=found.members["data"])

    add_form(
        console,
        routes,
        FormPage(
            USERS,
            "/invitations",
            "POST",
            "/invitations",
            _invitation,
            new_record(console, "users/invite.html", "Add invitation", "/invitations", form_values),
            result=show_link,
            page_path="/invitations/new",
        ),
    )
    add_deletion(console, routes, REVOCATION)


async def _read_invitation(visit: ConsoleVisit, variables: Variables) -> StoredRecord:
    for invitation in await read_all(visit, "/invitations", {}, MAX_INVITATIONS, MAX_INVITATIONS):
        if invitation["id"] == variables["invitation_id"]:
            return StoredRecord({"data": invitation})
    raise NotFound("invitation not found")


async def _consequences(_visit: ConsoleVisit, stored: StoredRecord, _: Variables) -> Consequences:
    ends = ["The link that was sent no longer works, and nobody can register with it."]
    undo, path = "This cannot be undone, but the user can be invited again.", f"{USERS.path}/invitations"
    return Consequences(stored.data["login"], ends, undo, path, [(path, "Invitations")])


REVOCATION = DeletionPage(
    USERS,
    f"{INVITATION}/revoke",
    INVITATION,
    "invitation",
    "invitation-revoked",
    lambda _: f"{USERS.path}/invitations",
    _consequences,
    verb="Revoke",
    recent="never",
    read=_read_invitation,
)


async def _list_values(visit: ConsoleVisit, _: Variables) -> Record:
    """Who administers the service is for root to see."""
    return {"title": USERS.title, "hidden_filters": () if visit.caller.is_root else ("administrator",)}


def _invitation(form: Form, _variables: Variables) -> Record:
    body: Record = {"login": form.get("login", "").strip(), "lang": form.get("lang", "")}
    return {**body, "days": read_number(form.get("days", "").strip())}
