"""The groups of a project: the list, the form that creates one, and the editor of a group."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.console.condition_fields import read_condition
from sso.console.editor_pages import EditedRecord, Form, RecordEditor, Variables, add_editor
from sso.console.form_error import FormError
from sso.console.projects.frame import path_of, project_page, read_project
from sso.console.sections import PROJECTS
from sso.console.user_lookup import find_user_id
from sso.console.users.form import split_list
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError, NotFound
from sso.perm.input.condition_notation import condition_text
from sso.perm.input.groups import MAX_CONDITIONS

GROUP = "/groups/<group_id>"


def condition_rows(form: dict[str, str] | None, group: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the titles and texts of the conditions, with an empty row for a new one."""
    if form is None:
        rows = [(item["title"], condition_text(item["condition"])) for item in group["conditions"]]
    else:
        rows = [row for row in _typed_rows(form) if any(row)]
    return [*rows, ("", "")]


def read_conditions(form: dict[str, str]) -> list[dict[str, Any]]:
    """Returns the conditions, unchecked. A row without a title and text is left out, so that it can be removed."""
    return [
        {"title": title or f"Condition {number}", "condition": read_condition(text, f"condition {number}")}
        for number, (title, text) in enumerate(_typed_rows(form), 1)
        if title or text
    ]


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


def group_pages(console: ConsoleView, routes: Blueprint) -> None:
    add_editor(console, routes, GROUP_EDITOR)

    @routes.get("/<project_id>/groups")
    async def show_groups(project_id: str) -> Response:
        return await groups(await console.open(PROJECTS), project_id)

    @routes.post("/<project_id>/groups")
    async def create_group(project_id: str) -> Response:
        visit, form = await console.submitted(PROJECTS, "POST", "/groups")
        body = {"project_id": project_id, "title": form.get("title", "").strip()}
        try:
            created = await visit.data("POST", "/groups", body=body)
        except ApiError as error:
            return await groups(visit, project_id, values=form, **problem(FormError.of(error)))
        return done(group_path(project_id, created["group_id"]), "group-created")

    async def groups(visit: ConsoleVisit, project_id: str, **context: Any) -> Response:
        project = await read_project(visit, project_id)
        search, after = request.args.get("search", "").strip(), request.args.get("after", "")
        found = await visit.call("GET", "/groups", query={"project_id": project_id, "search": search, "after": after})
        return await console.show(
            visit,
            "projects/groups.html",
            **project_page(project, "groups"),
            groups=found.members["data"],
            search=search,
            after=after,
            next=found.members.get("next"),
            **{"values": {}, **context},
        )

    @routes.post("/<project_id>/groups/<group_id>/delete")
    async def delete_group(project_id: str, group_id: str) -> Response:
        visit, _ = await console.submitted(PROJECTS, "DELETE", GROUP)
        await read_group(visit, project_id, group_id)
        await visit.call("DELETE", GROUP, group_id=group_id)
        return done(f"{path_of(project_id)}/groups", "group-deleted")


def group_path(project_id: str, group_id: str) -> str:
    return f"{path_of(project_id)}/groups/{quote(group_id, safe='')}"


async def read_group(visit: ConsoleVisit, project_id: str, group_id: str) -> dict[str, Any]:
    """Returns the members of the response. Raises NotFound if the group belongs to another project."""
    found = await visit.call("GET", GROUP, group_id=group_id)
    if found.members["data"]["project_id"] != project_id:
        raise NotFound("group not found")
    return found.members


async def _read(visit: ConsoleVisit, variables: Variables) -> EditedRecord:
    found = await read_group(visit, variables["project_id"], variables["group_id"])
    logins: dict[str, str] = found.get("logins", {})
    return EditedRecord({**found["data"], "logins": logins}, version_of(found["data"]))


async def _body(visit: ConsoleVisit, form: Form, _variables: Variables, _: EditedRecord) -> dict[str, Any]:
    return {
        "title": form.get("title", "").strip(),
        "description": form.get("description", "").strip(),
        "tags": split_list(form.get("tags", "")),
        "conditions": read_conditions(form),
        "users": await read_users(visit, form.get("users", "")),
        **({"override": True} if "override" in form else {}),
    }


async def _page(visit: ConsoleVisit, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    project = await read_project(visit, variables["project_id"])
    base = path_of(project["id"])
    logins: dict[str, str] = record.values["logins"]
    return {
        **project_page(project, "groups", record.values["title"], (f"{base}/groups", "Groups")),
        "condition_rows": condition_rows,
        "users": "\n".join(logins.get(user_id) or user_id for user_id in record.values["users"]),
        "uses": uses_of(project, variables["group_id"]),
    }


def uses_of(project: dict[str, Any], group_id: str) -> list[dict[str, str]]:
    """Returns the roles of applications that the project grants to the group or revokes from it."""
    services = project["settings"].get("services", {})
    return [
        {"application_id": application_id, "role": item["role"], "action": item["action"]}
        for application_id, service in services.items()
        for item in service["groups"]
        if item["group_id"] == group_id
    ]


GROUP_EDITOR = RecordEditor(
    "group",
    PROJECTS,
    "/<project_id>/groups/<group_id>",
    "PATCH",
    GROUP,
    "projects/group.html",
    "group-saved",
    _read,
    _body,
    _page,
    lambda variables: group_path(variables["project_id"], variables["group_id"]),
)
