"""Editors of records. While the administrator types, a dry run shows who would gain and lose which permissions."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar, TypeVarTuple

from msgspec import Struct
from quart import Blueprint, Response, request

from sso.console.document_forms.views import JSON, TABLE, DocumentForm
from sso.console.form_error import FormError
from sso.console.form_pages import Form
from sso.console.impact import count_matches, impact_values
from sso.console.list_pages import Variables
from sso.console.sections import ConsoleSection
from sso.console.view import MAX_CONSOLE_FORM, ConsoleView, RecentAuthenticationOf, add_page, done
from sso.console.visit import ConsoleVisit, variables_of, version_of
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.web.body import CHEAP_BYTES
from sso.web.request import parse_in_thread

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class EditedRecord(Struct, frozen=True):
    values: dict[str, Any]
    version: str  # so that no newer one is overwritten


async def read_record(visit: ConsoleVisit, operation: str, variables: Variables) -> EditedRecord:
    record = await visit.data("GET", operation, **variables_of(operation, variables))
    return EditedRecord(record, version_of(record))


EditorBody: TypeAlias = Callable[[ConsoleVisit, Form, Variables, EditedRecord], Awaitable[dict[str, Any]]]


class RecordEditor(Struct, frozen=True):
    """A record that is edited as a form: how it is read, shown and saved by operations of the management API."""

    section: ConsoleSection
    path: str  # below that of the section
    method: str  # the operation that saves has it
    operation: str  # its path
    template: str
    notice: str
    body: EditorBody
    page: Callable[[ConsoleVisit, Variables, EditedRecord], Awaitable[dict[str, Any]]]  # title, crumbs and more
    next_path: Callable[[Variables], str]  # after saving
    body_needs_record: bool = True  # the stored record is read for the body
    # Raises FieldError for a form that is saved without a change. The arguments are the record and the body.
    refuse_unchanged: Callable[[EditedRecord, dict[str, Any]], None] | None = None
    read: Callable[[ConsoleVisit, Variables], Awaitable[EditedRecord]] | None = None  # in place of `read_record`
    document: DocumentForm | None = None  # for a record with a table and JSON
    max_bytes: int = MAX_CONSOLE_FORM
    # The conditions of a body: the preview says how many users meet one of them.
    conditions: Callable[[dict[str, Any]], list[Any]] = lambda _body: []

    async def stored(self, visit: ConsoleVisit, variables: Variables) -> EditedRecord:
        """Reads the record once for each request, although a form that is refused shows it again."""
        if not visit.edited:
            read = self.read(visit, variables) if self.read else read_record(visit, self.operation, variables)
            visit.edited.append(await read)
        record: EditedRecord = visit.edited[0]
        return record


def add_editor(console: ConsoleView, routes: Blueprint, editor: RecordEditor) -> None:
    async def show(visit: ConsoleVisit, variables: Variables, form: Form | None, **context: Any) -> Response:
        record = await editor.stored(visit, variables)
        page = await editor.page(visit, variables, record)
        is_removed = page.get("project", {}).get("removed", False)  # a removed project cannot be changed
        shown = form or record.values  # for fields that are the same in both views
        if editor.document is not None:
            view = JSON if request.args.get("view") == JSON else TABLE
            form = {"view": JSON, **form} if form else editor.document.open(record.values, view)
            page |= await read_form(form, editor.document.values, form, page)
        return await console.show(
            visit,
            editor.template,
            record=record.values,
            shown=shown,
            form=form,
            action=request.path,
            version=record.version,
            may_save=visit.may(editor.method, editor.operation) and not is_removed,
            **page,
            **context,
        )

    async def read_body(
        visit: ConsoleVisit, variables: Variables, form: Form, *, dry_run: bool = False
    ) -> dict[str, Any]:
        record = await editor.stored(visit, variables) if editor.body_needs_record else EditedRecord({}, "")
        body = await editor.body(visit, form, variables, record)
        if editor.refuse_unchanged is not None and not dry_run:
            editor.refuse_unchanged(record, body)
        if "override" in form:  # assertions that the change would break
            body["override"] = True
        return body

    async def send(
        visit: ConsoleVisit, variables: Variables, form: Form, body: dict[str, Any], *, dry_run: bool = False
    ) -> dict[str, Any]:
        options: dict[str, Any] = {"query": {"dry_run": "1"}} if dry_run else {}
        version = form.get("version") or None
        found = await visit.call(editor.method, editor.operation, body=body, if_match=version, **options, **variables)
        return found.members

    async def refusal(form: Form, error: ApiError) -> FormError:
        """Returns the error with the field that shows it, if there is one."""
        if editor.document is None:
            return FormError.of(error).on_form(form)
        if isinstance(error, FieldError):
            error = await read_form(form, editor.document.locate, form, error)
        return FormError.of(error).on_form(editor.document.shown_fields(form))

    async def impact(visit: ConsoleVisit, variables: Variables, form: Form) -> dict[str, Any]:
        try:
            body = await read_body(visit, variables, form, dry_run=True)
            found = await send(visit, variables, form, body, dry_run=True)
            matches = await count_matches(visit, editor.conditions(body))
            return await impact_values(visit, found, matches, variables.get("application_id"))
        except ApiError as error:
            return {"impact_problem": FormError.of(error).on_form(()).text}

    async def submitted(recent: RecentAuthenticationOf) -> tuple[ConsoleVisit, Form]:
        operation = editor.method, editor.operation
        return await console.submitted(editor.section, *operation, recent=recent, max_bytes=editor.max_bytes)

    async def open_editor(**variables: str) -> Response:
        return await show(await console.open(editor.section), variables, None)

    async def preview(**variables: str) -> Response:
        """Returns what the change would do, as a part of the page."""
        visit, form = await submitted(recent="never")
        return await console.show(visit, "_impact.html", title="", **await impact(visit, variables, form))

    async def save(**variables: str) -> Response:
        visit, form = await submitted(recent="by_caller")
        try:
            if editor.document is not None:
                changed = await read_form(form, editor.document.press, form)
                if changed is not None:
                    return await show(visit, variables, changed)
        except ApiError as error:
            status = 200 if request.headers.get("HX-Request") else 422  # htmx shows no part of a refused page
            return await show(visit, variables, form, **{**(await refusal(form, error)).values, "status": status})
        if form.get("preview"):
            return await show(visit, variables, form, **await impact(visit, variables, form))
        await console.require_recent(visit, form)
        try:
            await send(visit, variables, form, await read_body(visit, variables, form))
        except ApiError as error:
            return await show(visit, variables, form, **(await refusal(form, error)).values)
        return done(editor.next_path(variables), editor.notice)

    add_page(routes, "GET", editor.path, open_editor)
    add_page(routes, "POST", editor.path, save)
    add_page(routes, "POST", f"{editor.path}/preview", preview)


async def read_form(form: Form, read: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Returns ``read(*arguments)``, which parses parts of the form; of a large form in the thread for large bodies."""
    if sum(map(len, form.values())) <= CHEAP_BYTES:
        return read(*arguments)
    return await parse_in_thread(partial(read, *arguments))
