"""The groups of a project: the list, the form that creates one, and the editor of a group."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.console.editor_pages import EditedRecord, Form, RecordEditor, Variables, add_editor
from sso.console.form_error import FormError
from sso.console.projects.frame import path_of, project_page, read_project
from sso.console.projects.group_form import condition_rows, read_conditions, read_users
from sso.console.sections import PROJECTS
from sso.console.users.form import split_list
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError, NotFound

GROUP = "/groups/<group_id>"


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
