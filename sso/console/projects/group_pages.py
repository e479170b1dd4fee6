"""The groups of a project: the list, the form that creates one, and the editor of a group."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from quart import Blueprint, request

from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion, count_text
from sso.console.editor_pages import EditedRecord, RecordEditor, add_editor
from sso.console.form_pages import Form, FormPage, add_form, new_record
from sso.console.form_values import read_text, split_list
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.projects.frame import (
    applications_of,
    find_project,
    group_choices,
    group_page,
    name_of,
    path_of,
    project_page,
    read_project,
)
from sso.console.projects.group_form import GROUP_FORM, member_fields, read_conditions, read_users
from sso.console.sections import PROJECTS
from sso.console.tester_pages import add_tester
from sso.console.user_lookup import with_user_ids
from sso.console.users.suggestion_pages import condition_page
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import NotFound

GROUP = "/groups/<group_id>"


def group_pages(console: ConsoleView, routes: Blueprint) -> None:
    add_editor(console, routes, GROUP_EDITOR)
    groups = ListPage(
        PROJECTS,
        "/groups",
        "groups",
        "projects/groups.html",
        ("group_id", "title", "description", "tags", "users"),
        path="/<project_id>/groups",
        export="/<project_id>/groups.csv",
        default_sort="title",
        page=_list_values,
        query=_query,
    )
    add_list(console, routes, groups)

    create = FormPage(
        PROJECTS,
        "/<project_id>/groups",
        "POST",
        "/groups",
        lambda form, variables: {"project_id": variables["project_id"], "title": form.get("title", "").strip()},
        new_record(console, "projects/new_group.html", "Add group", "/groups", _form_values),
        "group-created",
        lambda group, variables: group_path(variables["project_id"], group["group_id"]),
        page_path="/<project_id>/groups/new",
    )
    add_form(console, routes, create)
    add_tester(console, routes, PROJECTS, "/<project_id>/tester", "projects/tester.html", _tester)
    add_deletion(console, routes, DELETION)


async def _read_stored(visit: ConsoleVisit, variables: Variables) -> StoredRecord:
    found = await read_group(visit, variables["project_id"], variables["group_id"])
    return StoredRecord(found, version_of(found["data"]))


async def _consequences(visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
    project_id = variables["project_id"]
    group, project = stored.data, await find_project(visit, project_id)
    base, path = path_of(project_id), group_path(project_id, variables["group_id"])
    names = {str(item["application_id"]): item["name"] for item in await applications_of(visit, project_id)}
    uses = [
        f"{'The role' if use['action'] == 'grant' else 'The block of the role'} {use['role']} at "
        f"{names.get(use['application_id'], 'application ' + use['application_id'])}, for its users."
        for use in uses_of(project, variables["group_id"])
    ]
    who = f"{count_text(len(group['users']), 'user')} and {count_text(len(group['conditions']), 'condition')}"
    undo = "You can undo this in the audit trail: the group comes back with its users, conditions and roles."
    crumbs = [(f"{base}/groups", "Groups"), (path, group["title"])]
    if project:
        crumbs.insert(0, (base, name_of(project)))
    return Consequences(group["title"], [f"The group, with {who}.", *uses], undo, path, crumbs)


DELETION = DeletionPage(
    PROJECTS,
    "/<project_id>/groups/<group_id>/delete",
    GROUP,
    "group",
    "group-deleted",
    lambda variables: f"{path_of(variables['project_id'])}/groups",
    _consequences,
    has_dry_run=True,
    read=_read_stored,
)


async def _list_values(visit: ConsoleVisit, variables: Variables) -> Record:
    project_id = variables["project_id"]
    return group_page(await find_project(visit, project_id), project_id, "groups")


async def _form_values(visit: ConsoleVisit, variables: Variables) -> Record:
    project = await read_project(visit, variables["project_id"])
    return project_page(project, "groups", "Add group", (f"{path_of(project['id'])}/groups", "Groups"))


async def _query(_visit: ConsoleVisit, filters: Mapping[str, str], variables: Variables) -> Mapping[str, str]:
    return {**filters, "project_id": variables["project_id"]}


async def _tester(visit: ConsoleVisit, variables: Variables) -> tuple[Record, Form]:
    project_id = variables["project_id"]
    project, choices = await find_project(visit, project_id), await group_choices(visit, project_id)
    form = {name: request.args.get(name, "") for name in ("group_id", "user")}
    return {**group_page(project, project_id, "tester"), "group_choices": choices}, form


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


async def _body(visit: ConsoleVisit, form: Form, _variables: Variables, record: EditedRecord) -> dict[str, Any]:
    """Managers of the group alone may not send the other fields, so these are sent only if they have changed."""
    attributes = {
        "title": form.get("title", "").strip(),
        "description": read_text(form.get("description", "")),
        "tags": split_list(form.get("tags", "")),
    }
    stored = {**record.values, "description": read_text(record.values["description"])}
    return {
        **{name: value for name, value in attributes.items() if value != stored[name]},
        "conditions": [
            {**item, "condition": await with_user_ids(visit, item["condition"], f"condition_{number}")}
            for number, item in enumerate(read_conditions(form)["conditions"], 1)
        ],
        "users": await read_users(visit, form),
    }


async def _page(visit: ConsoleVisit, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    project_id = variables["project_id"]
    project, above = await find_project(visit, project_id), (f"{path_of(project_id)}/groups", "Groups")
    uses = uses_of(project, variables["group_id"])
    return {
        **group_page(project, project_id, "groups", record.values["title"], above),
        **await condition_page(visit, [item["condition"] for item in record.values["conditions"]]),
        "use_names": await visit.names({"application": [use["application_id"] for use in uses]}),
        "members": member_fields(record.values["users"], record.values["logins"]),
        "uses": uses,
    }


def uses_of(project: dict[str, Any], group_id: str) -> list[dict[str, str]]:
    """Returns the roles of applications that the project grants to the group or revokes from it."""
    services = project.get("settings", {}).get("services", {})
    return [
        {"application_id": application_id, "role": item["role"], "action": item["action"]}
        for application_id, service in services.items()
        for item in service["groups"]
        if item["group_id"] == group_id
    ]


GROUP_EDITOR = RecordEditor(
    PROJECTS,
    "/<project_id>/groups/<group_id>",
    "PATCH",
    GROUP,
    "projects/group.html",
    "group-saved",
    _body,
    _page,
    lambda variables: group_path(variables["project_id"], variables["group_id"]),
    read=_read,
    document=GROUP_FORM,
    conditions=lambda body: [item["condition"] for item in body["conditions"]],
)
