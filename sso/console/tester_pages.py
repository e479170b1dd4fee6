"""The test of conditions: "does this user at this address match?", for groups of projects and roles of applications."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from quart import Blueprint, Response, request

from sso.console.document_forms.time_fields import read_time
from sso.console.form_error import FormError
from sso.console.form_pages import Form
from sso.console.form_values import split_tags
from sso.console.json_fields import read_condition
from sso.console.list_pages import Record, Variables, while_typing
from sso.console.sections import ConsoleSection
from sso.console.view import ConsoleView, add_page
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.perm.engine.explanation.text import comparison_text

TEST = "/conditions/test"


# Returns the values of the page and the first values of its form. Raises ApiError if there is no such record.
Page: TypeAlias = Callable[[ConsoleVisit, Variables], Awaitable[tuple[Record, Form]]]


def add_tester(
    console: ConsoleView, routes: Blueprint, section: ConsoleSection, path: str, template: str, page: Page
) -> None:
    async def show(visit: ConsoleVisit, form: Form, values: Record) -> Response:
        return await console.show(
            visit, template, values=form, action=request.path, comparison_text=comparison_text, **values
        )

    async def open_tester(**variables: str) -> Response:
        visit = await console.open(section)
        values, form = await page(visit, variables)
        return await show(visit, form, {**values, "outcome": None})

    async def test(**variables: str) -> Response:
        visit, form = await console.submitted(section, "POST", TEST, recent="never")
        values, _ = await page(visit, variables)
        try:
            outcome = {"outcome": await visit.data("POST", TEST, body=question(form))}
        except ApiError as error:
            outcome = {"outcome": None, **while_typing(FormError.of(error)).values}
        return await show(visit, form, {**values, **outcome})

    add_page(routes, "GET", path, open_tester)
    add_page(routes, "POST", path, test)


def question(form: Form) -> Record:
    """Returns the body of the request. The facts of the form are sent if they are not empty."""
    body: Record = {}
    if form.get("group_id"):
        body["group_id"] = form["group_id"]
    else:
        body["condition"] = read_condition(form.get("condition", ""), "condition")
    body |= {name: form[name].strip() for name in ("user", "address", "domain") if form.get(name, "").strip()}
    body |= {"at": moment} if (moment := read_time({"at:from": form.get("at", "")}, "at").get("from")) else {}
    return body | {name: split_tags(form[name]) for name in ("tags", "purchases") if form.get(name, "").strip()}
