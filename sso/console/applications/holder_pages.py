"""The users to whom roles of an application are assigned, and the editor of the roles of a user."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.console.applications.frame import APPLICATION, application_page, path_of
from sso.console.editor_pages import EditedRecord, RecordEditor, add_editor
from sso.console.form_error import FormError
from sso.console.form_pages import Form
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.listing import FilterChoice
from sso.console.projects.frame import MAX_CHOICES
from sso.console.record_names import user_name
from sso.console.role_rows import RoleRow, kept_rows, no_role_chosen, read_day
from sso.console.sections import APPLICATIONS
from sso.console.user_lookup import find_user_id
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.field_errors import FieldError
from sso.web.redirects import see_other

HOLDERS = f"{APPLICATION}/holders"
PERMISSIONS = "/users/<user_id>/permissions"


def holder_pages(console: ConsoleView, routes: Blueprint) -> None:
    add_editor(console, routes, ASSIGNMENT_EDITOR)
    holders = ListPage(
        APPLICATIONS,
        HOLDERS,
        "holders",
        "applications/holders.html",
        ("role", "user_id", "login", "expired", "ttl"),
        ("role",),
        "/<application_id>/holders",
        "/<application_id>/holders.csv",
        "roles",
        page=_list_values,
        row=lambda _, holder: {**holder, "day": RoleRow(holder["role"], holder["expired"]).day},
    )
    add_list(console, routes, holders)

    @routes.get("/<application_id>/holders/new")
    async def choose_user(application_id: str) -> Response:
        """Opens the roles of the user who is named, or asks for one."""
        visit = await console.open(APPLICATIONS)
        visit.require("PATCH", PERMISSIONS)
        user, problem = request.args.get("user", "").strip(), {}
        if user:
            try:
                user_id = await find_user_id(visit, user, "user")
                return see_other(f"{path_of(application_id)}/users/{user_id}")
            except FieldError as error:
                problem = FormError.of(error).values
        application = await visit.data("GET", APPLICATION, application_id=application_id)
        page = application_page(application, "holders", "Give roles", "Users with roles")
        return await console.show(visit, "applications/new_holder.html", user_name=user, **page | problem)

    @routes.get("/choose")
    async def choose() -> Response:
        """Opens the roles of a user at the application that was chosen on the page of the user."""
        await console.open(APPLICATIONS)
        application_id, user_id = (request.args.get(name, "").strip() for name in ("application_id", "user_id"))
        if not application_id or not user_id:
            return see_other(APPLICATIONS.path)
        return see_other(f"{path_of(quote(application_id, safe=''))}/users/{quote(user_id, safe='')}")


async def _list_values(visit: ConsoleVisit, variables: Variables) -> Record:
    application = await visit.data("GET", APPLICATION, **variables)
    roles = await roles_of(visit, variables["application_id"])
    choices = [FilterChoice("role", "Role", [(name, name) for name in roles])]
    return {**application_page(application, "holders"), "choices": choices}


async def roles_of(visit: ConsoleVisit, application_id: str) -> list[str]:
    """Returns the roles to choose from; none if the administrator may not list them, who then types the name."""
    if not visit.may("GET", "/roles"):
        return []
    query = {"application_id": application_id, "limit": str(MAX_CHOICES)}
    return [role["name"] for role in await visit.data("GET", "/roles", query=query)]


async def _read(visit: ConsoleVisit, variables: Variables) -> EditedRecord:
    """The tree has the roles as they are stored, for every administrator who may read them."""
    application = await visit.data("GET", APPLICATION, application_id=variables["application_id"])
    query = {"application_id": variables["application_id"], "type": "tree"}
    found = await visit.call("GET", PERMISSIONS, user_id=variables["user_id"], query=query)
    roles = found.members["data"].get("roles", [])
    return EditedRecord({"application": application, "roles": roles}, found.headers["ETag"])


async def _body(_visit: ConsoleVisit, form: Form, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    rows = kept_rows([RoleRow.of(item) for item in record.values["roles"]], form)
    if name := form.get("role", "").strip():
        rows.append(RoleRow(name, read_day(form, "until")))
    return {"application_id": variables["application_id"], "roles": [row.item for row in rows]}


def _refuse_unchanged(record: EditedRecord, body: dict[str, Any]) -> None:
    if body["roles"] == [RoleRow.of(item).item for item in record.values["roles"]]:
        raise no_role_chosen()


async def _page(visit: ConsoleVisit, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    application_id, user_id = variables["application_id"], variables["user_id"]
    sees_users = visit.may("GET", "/users/<user_id>")
    user = await visit.data("GET", "/users/<user_id>", user_id=user_id) if sees_users else None
    base = path_of(application_id)
    return {
        "title": f"Roles of {user_name(user) if user else f'user {user_id}'}",
        "crumbs": [(base, record.values["application"]["name"]), (f"{base}/holders", "Users with roles")],
        "rows": [RoleRow.of(item) for item in record.values["roles"]],
        "roles": [(name, name) for name in await roles_of(visit, application_id)],
        "user_id": user_id,
        "application": record.values["application"],
    }


ASSIGNMENT_EDITOR = RecordEditor(
    APPLICATIONS,
    "/<application_id>/users/<user_id>",
    "PATCH",
    PERMISSIONS,
    "applications/assignment.html",
    "roles-assigned",
    _body,
    _page,
    lambda variables: f"{path_of(variables['application_id'])}/users/{variables['user_id']}",
    refuse_unchanged=_refuse_unchanged,
    read=_read,
)
