"""Forms and buttons of the console: what they send to the management API, and the page that follows."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Struct
from quart import Blueprint, Response

from sso.admin.request import AdminResponse
from sso.console.form_error import FormError
from sso.console.list_pages import PageValues, Record, Variables, no_values
from sso.console.sections import ConsoleSection
from sso.console.view import ConsoleView, RecentAuthenticationOf, add_page, done
from sso.console.visit import ConsoleVisit, variables_of
from sso.core.errors import ApiError

Form: TypeAlias = dict[str, str]


class ShowForm(Protocol):
    """Shows the page of a form. ``form`` has what was typed if it was refused; ``problem`` says why."""

    async def __call__(
        self, visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any
    ) -> Response: ...


def new_record(
    console: ConsoleView,
    template: str,
    title: str,
    operation: str,
    page: PageValues = no_values,
) -> ShowForm:
    """Returns how to show the form of a new record, on a page of its own. ``page`` may say what it begins with."""

    async def show(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any) -> Response:
        visit.require("POST", operation)
        names = {"title": title, "values": {}, **await page(visit, variables)}
        return await console.show(visit, template, **names | ({} if form is None else {"values": form}) | problem)

    return show


class FormPage(Struct, frozen=True):
    section: ConsoleSection
    path: str  # below that of the section
    method: str  # the operation has it
    operation: str  # its path
    body: Callable[[Form, Variables], Record]  # raises ApiError
    show: ShowForm  # a refused form is shown again
    notice: str = ""
    next_path: Callable[[Record, Variables], str] = lambda _record, _variables: ""  # after it, for the notice
    # In place of both, for a page that shows something once.
    result: Callable[[ConsoleVisit, AdminResponse, Variables, Form], Awaitable[Response]] | None = None
    recent: RecentAuthenticationOf = "always"
    # In place of ``recent``: whether a change of the stored record to this body needs recent authentication.
    is_important: Callable[[Record, Record], bool] | None = None
    opens: bool = False  # the page of the form has this path too
    page_path: str = ""  # or it has another one


def add_form(console: ConsoleView, routes: Blueprint, page: FormPage) -> None:
    async def open_form(**variables: str) -> Response:
        return await page.show(await console.open(page.section), variables, None)

    async def send(visit: ConsoleVisit, form: Form, variables: Variables) -> AdminResponse:
        named = variables_of(page.operation, variables)
        body = page.body(form, variables)
        if page.is_important is not None:
            stored = await visit.data("GET", page.operation, **named)
            await console.require_recent(visit, form, needed=page.is_important(stored, body))
        version = form.get("version") or None
        return await visit.call(page.method, page.operation, body=body, if_match=version, **named)

    async def submit(**variables: str) -> Response:
        recent = page.recent if page.is_important is None else "by_caller"
        visit, form = await console.submitted(page.section, page.method, page.operation, recent=recent)
        try:
            found = await send(visit, form, variables)
        except ApiError as error:
            return await page.show(visit, variables, form, **FormError.of(error).values)
        if page.result is not None:
            return await page.result(visit, found, variables, form)
        return done(page.next_path(found.members.get("data") or {}, variables), page.notice)

    if page.opens or page.page_path:
        add_page(routes, "GET", page.page_path or page.path, open_form)
    add_page(routes, "POST", page.path, submit)


class Action(Struct, frozen=True):
    """A button that needs no form of its own."""

    path: str  # below that of the section
    method: str  # the operation has it
    operation: str  # its path
    notice: str
    next_path: Callable[[Variables], str]
    body: Record | None = None
    recent: RecentAuthenticationOf = "always"


def add_actions(console: ConsoleView, routes: Blueprint, section: ConsoleSection, *actions: Action) -> None:
    for action in actions:
        add_page(routes, "POST", action.path, _submit(console, section, action))


def _submit(console: ConsoleView, section: ConsoleSection, action: Action) -> Callable[..., Awaitable[Response]]:
    async def submit(**variables: str) -> Response:
        visit, _ = await console.submitted(section, action.method, action.operation, recent=action.recent)
        named = variables_of(action.operation, variables)
        await visit.call(action.method, action.operation, body=action.body, **named)
        return done(action.next_path(variables), action.notice)

    return submit


def record_actions(section: ConsoleSection, record: str, notice: str) -> tuple[Action, ...]:
    """The actions that OAuth clients, identity providers and webhooks share: disable and enable.

    ``record`` is the path of a record in the management API, such as ``/clients/<client_id>``. The names of the notices
    begin with ``notice``.
    """
    parameter = record.rpartition("/")[2]

    def own_page(variables: Variables) -> str:
        return f"{section.path}/{variables[parameter[1:-1]]}"

    return (
        Action(f"/{parameter}/disable", "PATCH", record, f"{notice}-disabled", own_page, {"disabled": True}),
        Action(f"/{parameter}/enable", "PATCH", record, f"{notice}-enabled", own_page, {"disabled": False}),
    )
