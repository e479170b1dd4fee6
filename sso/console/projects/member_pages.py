"""The members of a project: the list, the form that adds one, and the editor of the roles of a member."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion
from sso.console.editor_pages import EditedRecord, RecordEditor, add_editor
from sso.console.form_pages import Form, FormPage, add_form, new_record
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.projects.frame import (
    PROJECT,
    applications_of,
    groups_of,
    name_of,
    own_page,
    path_of,
    project_page,
    read_project,
)
from sso.console.record_names import user_name
from sso.console.role_rows import RoleRow, kept_rows, no_role_chosen, read_day
from sso.console.sections import PROJECTS
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.core.ids import is_user_id

MEMBERS = f"{PROJECT}/members"
MEMBER = f"{MEMBERS}/<user_id>"
LEVELS = ("applications", "services", "groups")


def member_pages(console: ConsoleView, routes: Blueprint) -> None:
    add_editor(console, routes, MEMBER_EDITOR)
    members = ListPage(
        PROJECTS,
        MEMBERS,
        "members",
        "projects/members.html",
        ("user_id", "login", "roles"),
        (),
        "/<project_id>",
        "/<project_id>/members.csv",
        "members",
        page=_list_values,
        row=lambda _, member: {**member, "rows": role_rows(member["roles"])},
        cells=lambda member: {**member, "roles": [row.key for row in role_rows(member["roles"])]},
    )
    add_list(console, routes, members)
    show_form = new_record(console, "projects/new_member.html", "Add member", MEMBERS, _form_values)

    async def show_new(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any) -> Response:
        """The form has one field for the login and the id of the user."""
        if problem.get("problem_field") in ("login", "user_id"):
            problem["problem_field"] = "user"
        return await show_form(visit, variables, form, **problem)

    add = FormPage(
        PROJECTS,
        "/<project_id>/members",
        "POST",
        MEMBERS,
        _new_member,
        show_new,
        "member-added",
        lambda _, variables: own_page(variables),
        page_path="/<project_id>/members/new",
    )
    add_form(console, routes, add)
    add_deletion(console, routes, REMOVAL)


async def _consequences(visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
    project = await read_project(visit, variables["project_id"])
    base, user_id = path_of(project["id"]), variables["user_id"]
    name, path = await _name_of_user(visit, user_id), f"{base}/members/{quote(user_id)}"
    ends = [
        f"The role {row.name}{f' at {row.place_title}' if row.place else ' in the project'}."
        for row in role_rows(stored.data["roles"], await _places(visit, project["id"]))
    ]
    undo, crumbs = "You can undo this in the audit trail.", [(base, name_of(project)), (path, name)]
    return Consequences(name, ends, undo, path, crumbs)


REMOVAL = DeletionPage(
    PROJECTS,
    "/<project_id>/members/<user_id>/remove",
    MEMBER,
    "member",
    "member-removed",
    own_page,
    _consequences,
    verb="Remove",
    has_dry_run=True,
)


def _new_member(form: Form, _variables: Variables) -> Record:
    user = form.get("user", "").strip()
    return {"user_id" if is_user_id(user) else "login": user, "roles": {"project": [form.get("role", "")]}}


async def _list_values(visit: ConsoleVisit, variables: Variables) -> Record:
    return project_page(await read_project(visit, variables["project_id"]), "members")


async def _form_values(visit: ConsoleVisit, variables: Variables) -> Record:
    project = await read_project(visit, variables["project_id"])
    return {
        **project_page(project, "members", "Add member"),
        "role_choices": await role_choices(visit, variables["project_id"]),
        "values": {"user": request.args.get("login", "").strip()},
    }


async def role_choices(visit: ConsoleVisit, project_id: str) -> list[tuple[str, str]]:
    """Returns the roles that members can have, with their descriptions."""
    roles = await visit.data("GET", f"{PROJECT}/roles", project_id=project_id)
    return [(role["name"], f"{role['name']}: {role['description']}".removesuffix(": ")) for role in roles]


def role_rows(roles: dict[str, Any], titles: dict[str, str] | None = None) -> list[RoleRow]:
    """Returns the roles of a member: those in the whole project, then those at its resources."""
    rows = [RoleRow.of(item) for item in roles.get("project", ())]
    for level in LEVELS:
        for resource, items in roles.get(level, {}).items():
            place = f"{level}/{resource}"
            rows += [RoleRow.of(item, place, (titles or {}).get(place, place)) for item in items]
    return rows


def member_roles(rows: list[RoleRow]) -> dict[str, Any]:
    """Returns the roles of a member as the management API takes them."""
    roles: dict[str, Any] = {}
    for row in rows:
        if row.place:
            level, _, resource = row.place.partition("/")
            roles.setdefault(level, {}).setdefault(resource, []).append(row.item)
        else:
            roles.setdefault("project", []).append(row.item)
    return roles


async def _body(_visit: ConsoleVisit, form: Form, _variables: Variables, record: EditedRecord) -> dict[str, Any]:
    rows = kept_rows(role_rows(record.values["roles"]), form)
    if name := form.get("role", "").strip():
        rows.append(RoleRow(name, read_day(form, "until"), place=_read_place(form)))
    return {"roles": member_roles(rows)}


def _refuse_unchanged(record: EditedRecord, body: dict[str, Any]) -> None:
    if body["roles"] == member_roles(role_rows(record.values["roles"])):
        raise no_role_chosen()


def _read_place(form: Form) -> str:
    place = form.get("place", "")
    if place and place.partition("/")[0] not in LEVELS:
        raise FieldError(("place",), f"must begin with {', '.join(LEVELS)}")
    return place


async def _page(visit: ConsoleVisit, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    project = await read_project(visit, variables["project_id"])
    user_id = variables["user_id"]
    places = await _places(visit, project["id"])
    return {
        **project_page(project, "members", await _name_of_user(visit, user_id)),
        "rows": role_rows(record.values["roles"], places),
        "role_choices": await role_choices(visit, project["id"]),
        "places": [("", "The whole project"), *places.items()],
        "remove_path": f"{path_of(project['id'])}/members/{quote(user_id)}/remove",
    }


async def _name_of_user(visit: ConsoleVisit, user_id: str) -> str:
    if visit.may("GET", "/users/<user_id>"):
        try:
            return user_name(await visit.data("GET", "/users/<user_id>", user_id=user_id))
        except ApiError:
            pass  # the user was erased
    return f"User {user_id}"


async def _places(visit: ConsoleVisit, project_id: str) -> dict[str, str]:
    """Returns the resources of the project at which a member can have roles, with their titles."""
    applications = await applications_of(visit, project_id)
    services = [application for application in applications if application.get("service_meta")]
    return {
        **{f"applications/{item['application_id']}": f"Application {item['name']}" for item in applications},
        **{f"services/{item['application_id']}": f"Service {item['name']}" for item in services},
        **{f"groups/{group['group_id']}": f"Group {group['title']}" for group in await groups_of(visit, project_id)},
    }


MEMBER_EDITOR = RecordEditor(
    PROJECTS,
    "/<project_id>/members/<user_id>",
    "PATCH",
    MEMBER,
    "projects/member.html",
    "member-saved",
    _body,
    _page,
    lambda variables: f"{path_of(variables['project_id'])}/members/{quote(variables['user_id'])}",
    refuse_unchanged=_refuse_unchanged,
)
