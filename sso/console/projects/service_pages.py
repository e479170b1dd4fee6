"""The applications of a project, and the roles there that groups get or lose through the project."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response

from sso.console.editor_pages import EditedRecord, RecordEditor, add_editor
from sso.console.form_pages import Form
from sso.console.list_pages import Variables
from sso.console.projects.frame import (
    MAX_CHOICES,
    PROJECT,
    applications_of,
    group_choices,
    path_of,
    project_page,
    read_project,
)
from sso.console.role_rows import no_role_chosen
from sso.console.sections import PROJECTS
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit


def service_pages(console: ConsoleView, routes: Blueprint) -> None:
    add_editor(console, routes, SERVICE_EDITOR)

    @routes.get("/<project_id>/services")
    async def show_services(project_id: str) -> Response:
        visit = await console.open(PROJECTS)
        project = await read_project(visit, project_id)
        titles = dict(await group_choices(visit, project_id))
        return await console.show(
            visit,
            "projects/services.html",
            **project_page(project, "services"),
            services=services_of(project, await applications_of(visit, project_id), titles),
        )


def services_of(
    project: dict[str, Any], applications: list[dict[str, Any]], titles: dict[str, str]
) -> list[dict[str, Any]]:
    """Returns the applications of the project, each with its grants and revokes.

    An administrator who may not see applications sees those for which there are some.
    """
    named = {str(item["application_id"]): item for item in applications}
    stored = project["settings"].get("services", {})
    return [
        {
            "application_id": application_id,
            "name": named.get(application_id, {}).get("name", f"Application {application_id}"),
            "is_service": bool(named.get(application_id, {}).get("service_meta")),
            "actions": action_rows(stored.get(application_id, {}).get("groups", []), titles),
        }
        for application_id in dict.fromkeys((*named, *stored))
    ]


def action_rows(actions: list[dict[str, str]], titles: dict[str, str]) -> list[dict[str, str]]:
    return [{**action, "group": titles.get(action["group_id"], action["group_id"])} for action in actions]


async def _body(_visit: ConsoleVisit, form: Form, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    """The rows are those of the version that the form shows; another one is refused by the management API."""
    services = record.values["settings"].get("services", {})
    application_id = variables["application_id"]
    actions = services.get(application_id, {}).get("groups", [])
    kept = [action for number, action in enumerate(actions) if f"keep:{number}" in form]
    if role := form.get("role", "").strip():
        kept.append({"group_id": form.get("group_id", ""), "role": role, "action": form.get("effect", "")})
    return {"settings": {"services": {**services, application_id: {"groups": kept}}}}


def _refuse_unchanged(record: EditedRecord, body: dict[str, Any]) -> None:
    services, stored = body["settings"]["services"], record.values["settings"].get("services", {})
    if all(item == stored.get(application_id, {"groups": []}) for application_id, item in services.items()):
        raise no_role_chosen()


async def _page(visit: ConsoleVisit, variables: Variables, record: EditedRecord) -> dict[str, Any]:
    project, application_id = record.values, variables["application_id"]
    titles = dict(await group_choices(visit, project["id"]))
    base = path_of(project["id"])
    applications = await applications_of(visit, project["id"])
    shown = {item["application_id"]: item for item in services_of(project, applications, titles)}
    name = shown[application_id]["name"] if application_id in shown else f"Application {application_id}"
    roles = []
    if application_id in shown and visit.may("GET", "/roles"):
        query = {"application_id": application_id, "limit": str(MAX_CHOICES)}
        roles = await visit.data("GET", "/roles", query=query)
    return {
        **project_page(project, "services", name, (f"{base}/services", "Applications")),
        "actions": shown.get(application_id, {}).get("actions", []),
        "groups": list(titles.items()),
        "roles": [(role["name"], role["name"]) for role in roles if not role["protected"]],
    }


SERVICE_EDITOR = RecordEditor(
    PROJECTS,
    "/<project_id>/services/<application_id>",
    "PATCH",
    PROJECT,
    "projects/service.html",
    "service-saved",
    _body,
    _page,
    lambda variables: f"{path_of(variables['project_id'])}/services/{quote(variables['application_id'], safe='')}",
    refuse_unchanged=_refuse_unchanged,
)
