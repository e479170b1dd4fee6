"""The editors of schemas, roles and assertions of an application."""

from collections.abc import Callable
from typing import Any

from quart import Blueprint, request

from sso.console.applications.examples import SCHEMA_EXAMPLE, json_text, role_example, rule_names
from sso.console.applications.frame import APPLICATION, application_page, own_page, path_of
from sso.console.editor_pages import EditedRecord, RecordEditor, add_editor
from sso.console.form_pages import Action, Form, add_actions
from sso.console.json_fields import read_condition, read_object
from sso.console.list_pages import Record, Variables
from sso.console.sections import APPLICATIONS
from sso.console.tester_pages import add_tester
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.perm.input.condition_notation import condition_text

ROLE, SCHEMA = "/roles/<application_id>/<name>", "/schemas/<application_id>"

SCHEMA_SECTIONS = ("public_data", "private_data", "secret_data", "login")


def schema_body(form: dict[str, str]) -> dict[str, Any]:
    return {name: read_object(form[name], name) for name in SCHEMA_SECTIONS if name in form}


def role_body(form: dict[str, str]) -> dict[str, Any]:
    limit = form.get("user_limit", "").strip() or "0"
    return {
        "description": form.get("description", "").strip(),
        "default": "default" in form,
        "params": form.get("params", "").strip(),
        "user_limit": int(limit) if limit.isascii() and limit.isdecimal() and len(limit) < 10 else limit,
        "condition": read_condition(form.get("condition", ""), "condition"),
        "meta": read_object(form.get("meta", ""), "meta"),
    }


def assertions_body(form: dict[str, str]) -> dict[str, Any]:
    lines = [line.strip() for line in form.get("assertions", "").splitlines()]
    return {"assertions": [line for line in lines if line]}


def application_editor(
    key: str, path: str, operation: str, method: str, body: Callable[[Form], dict[str, Any]]
) -> RecordEditor:
    async def read_form(_visit: ConsoleVisit, form: Form, _variables: Variables, _: EditedRecord) -> dict[str, Any]:
        return body(form)

    async def page(visit: ConsoleVisit, variables: Variables, _: EditedRecord) -> dict[str, Any]:
        application_id = variables["application_id"]
        application = {"application_id": application_id, "name": await _application_name(visit, application_id)}
        return {
            **application_page(application, key, variables.get("name", "")),
            **await _examples(visit, key, application_id),
            "application_path": path_of(application_id),
            "as_json": json_text,
            "as_condition": condition_text,
        }

    return RecordEditor(
        APPLICATIONS,
        f"/<application_id>/{path}",
        method,
        operation,
        f"applications/{key}.html",
        f"{key}-saved",
        read_form,
        page,
        own_page,
        body_needs_record=False,
    )


EDITORS = (
    application_editor("schema", "schema", SCHEMA, "PATCH", schema_body),
    application_editor("role", "roles/<name>", ROLE, "PATCH", role_body),
    application_editor("assertions", "assertions", f"{APPLICATION}/assertions", "PUT", assertions_body),
)


def editor_pages(console: ConsoleView, routes: Blueprint) -> None:
    for editor in EDITORS:
        add_editor(console, routes, editor)
    delete_role = Action("/<application_id>/roles/<name>/delete", "DELETE", ROLE, "role-deleted", own_page)
    add_actions(console, routes, APPLICATIONS, delete_role)
    test_path = "/<application_id>/roles/<name>/test"
    add_tester(console, routes, APPLICATIONS, test_path, "applications/tester.html", _tester)


async def _tester(visit: ConsoleVisit, variables: Variables) -> tuple[Record, Form]:
    role = await visit.data("GET", ROLE, **variables)
    base, name = own_page(variables), variables["name"]
    crumbs = [(base, f"Application {variables['application_id']}"), (f"{base}/roles/{name}", name)]
    form = {"condition": condition_text(role["condition"]), "user": request.args.get("user", "")}
    return {"title": "Test the condition", "crumbs": crumbs}, form


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
