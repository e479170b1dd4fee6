"""The editors of schemas, roles and assertions of an application."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response

from sso.console.applications.editors import assertions_body, json_text, role_body, schema_body
from sso.console.applications.pages import APPLICATION, path_of
from sso.console.editor_pages import EditedRecord, Form, RecordEditor, Variables, add_editor
from sso.console.sections import APPLICATIONS
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.input.condition_notation import condition_text

ROLE = "/roles/<application_id>/<name>"


def application_editor(
    key: str, title: str, path: str, operation: str, method: str, body: Callable[[Form], dict[str, Any]]
) -> RecordEditor:
    async def read(visit: ConsoleVisit, variables: Variables) -> EditedRecord:
        record = await visit.data("GET", operation, **variables)
        return EditedRecord(record, version_of(record))

    async def read_form(_visit: ConsoleVisit, form: Form, _variables: Variables, _: EditedRecord) -> dict[str, Any]:
        return body(form)

    async def page(_visit: ConsoleVisit, variables: Variables, _: EditedRecord) -> dict[str, Any]:
        application_id = variables["application_id"]
        return {
            "title": variables.get("name", title),
            "crumbs": [(path_of(application_id), f"Application {application_id}")],
            "application_path": path_of(application_id),
            "as_json": json_text,
            "as_condition": condition_text,
        }

    return RecordEditor(
        key,
        APPLICATIONS,
        f"/<application_id>/{path}",
        method,
        operation,
        f"applications/{key}.html",
        f"{key}-saved",
        read,
        read_form,
        page,
        lambda variables: path_of(variables["application_id"]),
        lambda variables: is_central(variables["application_id"]),
    )


EDITORS = (
    application_editor("schema", "Schema", "schema", "/schemas/<application_id>", "PATCH", schema_body),
    application_editor("role", "Role", "roles/<name>", ROLE, "PATCH", role_body),
    application_editor("assertions", "Assertions", "assertions", f"{APPLICATION}/assertions", "PUT", assertions_body),
)


def editor_pages(console: ConsoleView, routes: Blueprint) -> None:
    for editor in EDITORS:
        add_editor(console, routes, editor)

    @routes.post("/<application_id>/roles")
    async def create_role(application_id: str) -> Response:
        visit, form = await console.submitted(APPLICATIONS, "POST", "/roles", dangerous=is_central(application_id))
        name = form.get("name", "").strip()
        await visit.call("POST", "/roles", body={"application_id": application_id, "name": name})
        return done(f"{path_of(application_id)}/roles/{quote(name)}", "role-created")

    @routes.post("/<application_id>/roles/<name>/delete")
    async def delete_role(application_id: str, name: str) -> Response:
        visit, _ = await console.submitted(APPLICATIONS, "DELETE", ROLE, dangerous=True)
        await visit.call("DELETE", ROLE, application_id=application_id, name=name)
        return done(path_of(application_id), "role-deleted")


def is_central(application_id: str) -> bool:
    """Roles of the central application make administrators."""
    return application_id == str(CENTRAL_APPLICATION_ID)
