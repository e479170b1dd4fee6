"""The editors of schemas, roles and assertions of an application."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
from quart import Blueprint, Response

from sso.console.applications.pages import APPLICATION, path_of
from sso.console.condition_fields import read_condition, read_object
from sso.console.editor_pages import EditedRecord, Form, RecordEditor, Variables, add_editor
from sso.console.sections import APPLICATIONS
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError
from sso.perm.input.condition_notation import condition_text

SCHEMA_SECTIONS = ("public_data", "private_data", "secret_data", "login")
RULE_SECTIONS = ("private_data", "public_data")  # whose rules roles give
_EXAMPLE_RULE = ("private_data", "chat", "kick")  # if the schema has no rules
ROLE, SCHEMA = "/roles/<application_id>/<name>", "/schemas/<application_id>"


def json_text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if value else ""


SCHEMA_EXAMPLE = json_text({"chat": {"write": {"value": True}, "kick": {"value": False}}})


def schema_body(form: dict[str, str]) -> dict[str, Any]:
    return {name: read_object(form[name], name) for name in SCHEMA_SECTIONS if name in form} | override(form)


def role_body(form: dict[str, str]) -> dict[str, Any]:
    limit = form.get("user_limit", "").strip() or "0"
    return {
        "description": form.get("description", "").strip(),
        "default": "default" in form,
        "params": form.get("params", "").strip(),
        "user_limit": int(limit) if limit.isascii() and limit.isdecimal() and len(limit) < 10 else limit,
        "condition": read_condition(form.get("condition", ""), "condition"),
        "meta": read_object(form.get("meta", ""), "meta"),
        **override(form),
    }


def assertions_body(form: dict[str, str]) -> dict[str, Any]:
    lines = [line.strip() for line in form.get("assertions", "").splitlines()]
    return {"assertions": [line for line in lines if line], **override(form)}


def override(form: dict[str, str]) -> dict[str, Any]:
    return {"override": True} if "override" in form else {}


def rule_paths(schema: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns the rules of the schema, each with its section: those first that users do not have without a role."""
    found = [item for section in RULE_SECTIONS for item in _rules(schema.get(section, {}), (section,))]
    return [path for path, _ in sorted(found, key=lambda item: bool(item[1]))]


def rule_names(schema: dict[str, Any]) -> list[str]:
    return [".".join(path) for path in rule_paths(schema)]


def role_example(schema: dict[str, Any]) -> str:
    """Returns the rules of a role that gives the first rule of the schema."""
    example: Any = {"value": True}
    for name in reversed(next(iter(rule_paths(schema)), _EXAMPLE_RULE)):
        example = {name: example}
    return json_text(example)


def _rules(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(node, dict):
        return
    if "value" in node and not isinstance(node["value"], dict):
        yield path, node["value"]
        return
    for name, child in node.items():
        yield from _rules(child, (*path, name))


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
