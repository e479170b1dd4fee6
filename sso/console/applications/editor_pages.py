"""The editors of schemas, roles and assertions. While the administrator types, a dry run shows who gains what."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response

from sso.console.applications.editors import assertions_body, json_text, role_body, schema_body
from sso.console.applications.pages import APPLICATION, path_of
from sso.console.form_error import FormError
from sso.console.sections import APPLICATIONS
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.web.body import InvalidBody

ROLE = "/roles/<application_id>/<name>"
ASSERTIONS = f"{APPLICATION}/assertions"


@dataclass(frozen=True)
class Editor:
    """A record that is edited as a form: how it is read and saved by the management API."""

    key: str
    title: str
    path: str  # below the page of the application
    read: str  # the path of the operation
    method: str
    body: Callable[[dict[str, str]], dict[str, Any]]


EDITORS = (
    Editor("schema", "Schema", "schema", "/schemas/<application_id>", "PATCH", schema_body),
    Editor("role", "Role", "roles/<name>", ROLE, "PATCH", role_body),
    Editor("assertions", "Assertions", "assertions", ASSERTIONS, "PUT", assertions_body),
)


def editor_pages(console: ConsoleView, routes: Blueprint) -> None:
    for editor in EDITORS:
        _add_editor(console, routes, editor)

    @routes.post("/<application_id>/roles")
    async def create_role(application_id: str) -> Response:
        visit, form = await console.submitted(APPLICATIONS, "POST", "/roles", dangerous=_is_central(application_id))
        number = int(application_id) if application_id.isascii() and application_id.isdecimal() else application_id
        name = form.get("name", "").strip()
        await visit.call("POST", "/roles", body={"application_id": number, "name": name})
        return done(f"{path_of(application_id)}/roles/{quote(name)}", "role-created")

    @routes.post("/<application_id>/roles/<name>/delete")
    async def delete_role(application_id: str, name: str) -> Response:
        visit, _ = await console.submitted(APPLICATIONS, "DELETE", ROLE, dangerous=True)
        await visit.call("DELETE", ROLE, application_id=application_id, name=name)
        return done(path_of(application_id), "role-deleted")


def _add_editor(console: ConsoleView, routes: Blueprint, editor: Editor) -> None:
    async def show(
        visit: ConsoleVisit, variables: dict[str, Any], form: dict[str, str] | None, **context: Any
    ) -> Response:
        record = await visit.data("GET", editor.read, **variables)
        application_id = variables["application_id"]
        return await console.show(
            visit,
            f"applications/{editor.key}.html",
            title=variables.get("name", editor.title),
            crumbs=[(path_of(application_id), f"Application {application_id}")],
            record=record,
            form=form,
            as_json=json_text,
            action=f"{path_of(application_id)}/{editor.path.replace('<name>', quote(variables.get('name', '')))}",
            version=form.get("version") if form else version_of(record),
            **context,
        )

    async def open_editor(**variables: str) -> Response:
        return await show(await console.open(APPLICATIONS), variables, None)

    async def preview(**variables: str) -> Response:
        """Returns what the change would do, as a part of the page."""
        visit, form = await console.submitted(APPLICATIONS, editor.method, editor.read)
        return await console.show(visit, "applications/_impact.html", title="", **await impact(visit, variables, form))

    async def impact(visit: ConsoleVisit, variables: dict[str, Any], form: dict[str, str]) -> dict[str, Any]:
        try:
            query, body = {"dry_run": "1"}, editor.body(form)
            found = await visit.call(editor.method, editor.read, query=query, body=body, **variables)
        except (ApiError, InvalidBody) as error:
            return {"impact_problem": FormError.of(error).text}
        return {"impact": found.members}

    async def save(**variables: str) -> Response:
        is_central = _is_central(variables["application_id"])
        visit, form = await console.submitted(APPLICATIONS, editor.method, editor.read, dangerous=is_central)
        if form.get("preview"):
            return await show(visit, variables, form, **await impact(visit, variables, form))
        try:
            options: dict[str, Any] = {"body": editor.body(form), "if_match": form.get("version") or None, **variables}
            await visit.call(editor.method, editor.read, **options)
        except (ApiError, InvalidBody) as error:
            return await show(visit, variables, form, **problem(FormError.of(error)))
        return done(path_of(variables["application_id"]), f"{editor.key}-saved")

    path = f"/<application_id>/{editor.path}"
    routes.add_url_rule(path, f"open_{editor.key}", open_editor, methods=["GET"])
    routes.add_url_rule(path, f"save_{editor.key}", save, methods=["POST"])
    routes.add_url_rule(f"{path}/preview", f"preview_{editor.key}", preview, methods=["POST"])


def _is_central(application_id: str) -> bool:
    """Roles of the central application make administrators."""
    return application_id == str(CENTRAL_APPLICATION_ID)
