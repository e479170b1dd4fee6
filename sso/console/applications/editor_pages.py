"""The editors of schemas, roles and assertions of an application."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, request

from sso.console.applications.frame import APPLICATION, application_page, own_page, path_of
from sso.console.applications.role_form import ROLE_FORM, read_role
from sso.console.applications.schema_form import SCHEMA_FORM, read_schema
from sso.console.deletion_pages import (
    MAX_COUNTED,
    Consequences,
    DeletionPage,
    StoredRecord,
    add_deletion,
    count_records,
    count_text,
)
from sso.console.document_forms.views import DocumentForm
from sso.console.editor_pages import EditedRecord, EditorBody, RecordEditor, add_editor, read_form
from sso.console.form_pages import Form
from sso.console.form_values import read_number, read_text
from sso.console.list_pages import Record, Variables
from sso.console.sections import APPLICATIONS
from sso.console.tester_pages import add_tester
from sso.console.user_lookup import with_user_ids
from sso.console.users.suggestion_pages import condition_page
from sso.console.view import MAX_CONSOLE_FORM, ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.perm.input.condition_notation import condition_text
from sso.web.body import SCHEMA_BODY

ROLE, SCHEMA = "/roles/<application_id>/<name>", "/schemas/<application_id>"
MAX_JSON_FORM = 3 * SCHEMA_BODY.max_bytes  # the quotation marks and brackets of JSON take three bytes in a form


async def schema_body(_visit: ConsoleVisit, form: Form, _: Variables, record: EditedRecord) -> dict[str, Any]:
    """Who may not change ``secret_data`` may not send it either, so that it is sent only if it has changed."""
    sections = await read_form(form, read_schema, form)
    if sections.get("secret_data") == record.values.get("secret_data"):
        sections.pop("secret_data", None)
    return sections


async def role_body(visit: ConsoleVisit, form: Form, _: Variables, _record: EditedRecord) -> dict[str, Any]:
    limit = form.get("user_limit", "").strip() or "0"
    role = await read_form(form, read_role, form)
    return {
        "description": read_text(form.get("description", "")),
        "default": "default" in form,
        "params": form.get("params", "").strip(),
        "user_limit": read_number(limit),
        **role,
        "condition": await with_user_ids(visit, role["condition"], "condition"),
    }


async def assertions_body(_visit: ConsoleVisit, form: Form, _: Variables, _record: EditedRecord) -> dict[str, Any]:
    lines = [line.strip() for line in form.get("assertions", "").splitlines()]
    return {"assertions": [line for line in lines if line]}


def application_editor(
    key: str,
    path: str,
    operation: str,
    method: str,
    body: EditorBody,
    document: DocumentForm | None = None,
) -> RecordEditor:
    async def page(visit: ConsoleVisit, variables: Variables, record: EditedRecord) -> dict[str, Any]:
        application_id = variables["application_id"]
        application = {"application_id": application_id, "name": await _application_name(visit, application_id)}
        schema = await _readable(visit, SCHEMA, application_id) if key == "role" else {}
        return {
            **application_page(application, key, variables.get("name", "")),
            "application_path": path_of(application_id),
            "schema": schema,
            "has_condition": bool(record.values.get("condition")),
            **(await condition_page(visit, [record.values["condition"]]) if key == "role" else {}),
        }

    return RecordEditor(
        APPLICATIONS,
        f"/<application_id>/{path}",
        method,
        operation,
        f"applications/{key}.html",
        f"{key}-saved",
        body,
        page,
        own_page,
        body_needs_record=key == "schema",
        document=document,
        max_bytes=MAX_JSON_FORM if document else MAX_CONSOLE_FORM,
        conditions=lambda body: [body.get("condition")],
    )


EDITORS = (
    application_editor("schema", "schema", SCHEMA, "PATCH", schema_body, SCHEMA_FORM),
    application_editor("role", "roles/<name>", ROLE, "PATCH", role_body, ROLE_FORM),
    application_editor("assertions", "assertions", f"{APPLICATION}/assertions", "PUT", assertions_body),
)


def editor_pages(console: ConsoleView, routes: Blueprint) -> None:
    for editor in EDITORS:
        add_editor(console, routes, editor)
    add_deletion(console, routes, ROLE_DELETION)
    test_path = "/<application_id>/roles/<name>/test"
    add_tester(console, routes, APPLICATIONS, test_path, "applications/tester.html", _tester)


async def _role_consequences(visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
    role, base, name = stored.data, own_page(variables), variables["name"]
    path = f"{base}/roles/{quote(name)}"
    holders = await count_records(
        visit, f"{APPLICATION}/holders", {"role": name}, application_id=variables["application_id"]
    )
    ends = ["The rules that it gives."]
    if role["default"]:
        ends.append("Every user loses it.")
    if role["condition"]:
        ends.append("Every user who meets its condition loses it.")
    if holders:
        ends.append(f"{count_text(holders, 'user').capitalize()} to whom it was given.")
    undo = "You can undo this in the audit trail: users and groups then have the role again."
    crumbs = [(base, await _application_name(visit, variables["application_id"])), (path, name)]
    is_held, shows_effect = bool(holders or role["default"] or role["condition"]), (holders or 0) <= MAX_COUNTED
    return Consequences(name, ends, undo, path, crumbs, asks_name=is_held, shows_effect=shows_effect)


ROLE_DELETION = DeletionPage(
    APPLICATIONS,
    "/<application_id>/roles/<name>/delete",
    ROLE,
    "role",
    "role-deleted",
    own_page,
    _role_consequences,
    has_dry_run=True,
)


async def _tester(visit: ConsoleVisit, variables: Variables) -> tuple[Record, Form]:
    role = await visit.data("GET", ROLE, **variables)
    base, name = own_page(variables), variables["name"]
    crumbs = [(base, f"Application {variables['application_id']}"), (f"{base}/roles/{name}", name)]
    form = {"condition": condition_text(role["condition"]), "user": request.args.get("user", "")}
    return {"title": "Test the condition", "crumbs": crumbs}, form


async def _application_name(visit: ConsoleVisit, application_id: str) -> str:
    application = await _readable(visit, APPLICATION, application_id)
    return str(application.get("name", f"Application {application_id}"))


async def _readable(visit: ConsoleVisit, path: str, application_id: str) -> dict[str, Any]:
    """Returns a record that helps to understand the page, or an empty one if the user may not read it."""
    if not visit.may("GET", path):
        return {}
    try:
        record: dict[str, Any] = await visit.data("GET", path, application_id=application_id)
    except ApiError:
        return {}
    return record
