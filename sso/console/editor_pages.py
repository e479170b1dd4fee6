"""Editors of records. While the administrator types, a dry run shows who would gain and lose which permissions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from quart import Blueprint, Response, request

from sso.console.form_error import FormError
from sso.console.form_pages import Form
from sso.console.list_pages import Variables
from sso.console.sections import ConsoleSection
from sso.console.view import ConsoleView, add_page, done
from sso.console.visit import ConsoleVisit, variables_of, version_of
from sso.core.errors import ApiError


@dataclass(frozen=True)
class EditedRecord:
    values: dict[str, Any]
    version: str  # so that no newer one is overwritten


async def read_record(visit: ConsoleVisit, operation: str, variables: Variables) -> EditedRecord:
    record = await visit.data("GET", operation, **variables_of(operation, variables))
    return EditedRecord(record, version_of(record))


@dataclass(frozen=True)
class RecordEditor:
    """A record that is edited as a form: how it is read, shown and saved by operations of the management API."""

    section: ConsoleSection
    path: str  # below that of the section
    method: str  # the operation that saves has it
    operation: str  # its path
    template: str
    notice: str
    body: Callable[[ConsoleVisit, Form, Variables, EditedRecord], Awaitable[dict[str, Any]]]
    page: Callable[[ConsoleVisit, Variables, EditedRecord], Awaitable[dict[str, Any]]]  # title, crumbs and more
    next_path: Callable[[Variables], str]  # after saving
    body_needs_record: bool = True  # the stored record is read for the body
    read: Callable[[ConsoleVisit, Variables], Awaitable[EditedRecord]] | None = None  # in place of `read_record`

    async def stored(self, visit: ConsoleVisit, variables: Variables) -> EditedRecord:
        if self.read is not None:
            return await self.read(visit, variables)
        return await read_record(visit, self.operation, variables)


def add_editor(console: ConsoleView, routes: Blueprint, editor: RecordEditor) -> None:
    async def show(visit: ConsoleVisit, variables: Variables, form: Form | None, **context: Any) -> Response:
        record = await editor.stored(visit, variables)
        page = await editor.page(visit, variables, record)
        is_removed = page.get("project", {}).get("removed", False)  # a removed project cannot be changed
        return await console.show(
            visit,
            editor.template,
            record=record.values,
            form=form,
            action=request.path,
            version=form.get("version") if form else record.version,
            may_save=visit.may(editor.method, editor.operation) and not is_removed,
            **page,
            **context,
        )

    async def send(visit: ConsoleVisit, variables: Variables, form: Form, *, dry_run: bool) -> dict[str, Any]:
        record = await editor.stored(visit, variables) if editor.body_needs_record else EditedRecord({}, "")
        options: dict[str, Any] = {"query": {"dry_run": "1"}} if dry_run else {}
        body = await editor.body(visit, form, variables, record)
        if "override" in form:  # assertions that the change would break
            body["override"] = True
        version = form.get("version") or None
        found = await visit.call(editor.method, editor.operation, body=body, if_match=version, **options, **variables)
        return found.members

    async def impact(visit: ConsoleVisit, variables: Variables, form: Form) -> dict[str, Any]:
        try:
            return {"impact": await send(visit, variables, form, dry_run=True)}
        except ApiError as error:
            return {"impact_problem": FormError.of(error).values["problem_summary"]}

    async def open_editor(**variables: str) -> Response:
        return await show(await console.open(editor.section), variables, None)

    async def preview(**variables: str) -> Response:
        """Returns what the change would do, as a part of the page."""
        visit, form = await console.submitted(editor.section, editor.method, editor.operation, recent="never")
        return await console.show(visit, "_impact.html", title="", **await impact(visit, variables, form))

    async def save(**variables: str) -> Response:
        visit, form = await console.submitted(editor.section, editor.method, editor.operation, recent="by_caller")
        if form.get("preview"):
            return await show(visit, variables, form, **await impact(visit, variables, form))
        await console.require_recent(visit, form)
        try:
            await send(visit, variables, form, dry_run=False)
        except ApiError as error:
            return await show(visit, variables, form, **FormError.of(error).values)
        return done(editor.next_path(variables), editor.notice)

    add_page(routes, "GET", editor.path, open_editor)
    add_page(routes, "POST", editor.path, save)
    add_page(routes, "POST", f"{editor.path}/preview", preview)
