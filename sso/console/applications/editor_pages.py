"""The editors of schemas, roles and assertions of an application."""

from collections.abc import Callable
from typing import Any

from quart import Blueprint, Response

from sso.console.applications.editors import assertions_body, json_text, role_body, schema_body
from sso.console.applications.examples import SCHEMA_EXAMPLE, role_example, rule_names
from sso.console.applications.pages import APPLICATION, path_of
from sso.console.editor_pages import EditedRecord, Form, RecordEditor, Variables, add_editor
from sso.console.sections import APPLICATIONS
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError
from sso.perm.input.condition_notation import condition_text

ROLE, SCHEMA = "/roles/<application_id>/<name>", "/schemas/<application_id>"


def application_editor(
    key: str, title: str, path: str, operation: str, method: str, body: Callable[[Form], dict[str, Any]]
) -> RecordEditor:
    async def read(visit: ConsoleVisit, variables: Variables) -> EditedRecord:
        record = await visit.data("GET", operation, **variables)
        return EditedRecord(record, version_of(record))

    async def read_form(_visit: ConsoleVisit, form: Form, _variables: Variables, _: EditedRecord) -> dict[str, Any]:
        return body(form)

    async def page(visit: ConsoleVisit, variables: Variables, _: EditedRecord) -> dict[str, Any]:
        application_id = variables["application_id"]
        return {
            "title": variables.get("name", title),
            "crumbs": [(path_of(application_id), await _application_name(visit, application_id))],
            **await _examples(visit, key, application_id),
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
        body_needs_record=False,
    )


EDITORS = (
    application_editor("schema", "Schema", "schema", SCHEMA, "PATCH", schema_body),
    application_editor("role", "Role", "roles/<name>", ROLE, "PATCH", role_body),
    application_editor("assertions", "Assertions", "assertions", f"{APPLICATION}/assertions", "PUT", assertions_body),
)


def editor_pages(console: ConsoleView, routes: Blueprint) -> None:
    for editor in EDITORS:
        add_editor(console, routes, editor)

    @routes.post("/<application_id>/roles/<name>/delete")
    async def delete_role(application_id: str, name: str) -> Response:
        visit, _ = await console.submitted(APPLICATIONS, "DELETE", ROLE)
        await visit.call("DELETE", ROLE, application_id=application_id, name=name)
        return done(path_of(application_id), "role-deleted")


async def _application_name(visit: ConsoleVisit, application_id: str) -> str:
    application = await _readable(visit, APPLICATION, application_id)
    return str(application.get("name", f"Application {application_id}"))


async def _examples(visit: ConsoleVisit, key: str, application_id: str) -> dict[str, Any]:
    """Returns what the editor of a schema or role shows to copy."""
    if key == "schema":
        return {"schema_example": SCHEMA_EXAMPLE}
    if key != "role":
        return {}
    schema = await _readable(visit, SCHEMA, application_id)
    return {"rules": rule_names(schema), "role_example": role_example(schema)}


async def _readable(visit: ConsoleVisit, path: str, application_id: str) -> dict[str, Any]:
    """Returns a record that helps to understand the page, or an empty one if the user may not read it."""
    if not visit.may("GET", path):
        return {}
    try:
        record: dict[str, Any] = await visit.data("GET", path, application_id=application_id)
    except ApiError:
        return {}
    return record
