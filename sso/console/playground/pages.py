"""The playground: a document of permissions to edit and to ask, for administrators, and for everybody in the demo."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import trio
from quart import Blueprint, Response, request

from sso.console.form_error import FormError
from sso.console.playground.additions import add, as_text
from sso.console.playground.examples import Example, examples
from sso.console.playground.trial import DocumentQuestion, Trial, read_fields, try_document
from sso.console.sections import PLAYGROUND
from sso.console.view import MAX_CONSOLE_FORM, PAGE_DEFAULTS, ConsoleView
from sso.core.field_errors import FieldError
from sso.core.language import current_language
from sso.core.language_names import SOURCE
from sso.db.clock import DatabaseClock
from sso.web.pages import form_fields, page

DEMO_PATH = "/docs/playground"
FIRST_EXAMPLE = "clan_ranks"
TITLE = "Playground"
MAX_WAITING = 4
BUSY = "The playground is busy. Please try again in a moment."
Fields = Mapping[str, str]


def playground_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(PLAYGROUND)
    at_a_time = trio.CapacityLimiter(1)

    @routes.get("")
    async def show() -> Response:
        visit = await console.open(PLAYGROUND)
        values = await _opened(request.args, at_a_time)
        return await console.show(visit, "playground/page.html", title=TITLE, action=PLAYGROUND.path, **values)

    @routes.post("")
    async def ask() -> Response:
        visit, form = await console.submitted(PLAYGROUND, recent="never")
        values = await _asked(form, at_a_time)
        return await console.show(visit, "playground/page.html", title=TITLE, action=PLAYGROUND.path, **values)

    @routes.post("/file")
    async def download() -> Response:
        _, form = await console.submitted(PLAYGROUND, recent="never")
        return _file(form)

    return routes


def demo_playground_pages() -> Blueprint:
    """The same pages without a sign-in. They change nothing, and only the demo, which is on this machine, has them."""
    routes = Blueprint("demo_playground", __name__, url_prefix=DEMO_PATH)
    at_a_time = trio.CapacityLimiter(1)

    async def shown(values: dict[str, Any]) -> Response:
        current_language.set(SOURCE)
        crumbs = [("/docs/change_permissions.html#playground", "Documentation")]
        context = {**PAGE_DEFAULTS, "section": PLAYGROUND, "csrf": "", "crumbs": crumbs, **values}
        return await page("console/playground/page.html", page_title=TITLE, action=DEMO_PATH, **context)

    @routes.get("")
    async def show() -> Response:
        return await shown(await _opened(request.args, at_a_time))

    @routes.post("")
    async def ask() -> Response:
        return await shown(await _asked(await form_fields(MAX_CONSOLE_FORM), at_a_time))

    @routes.post("/file")
    async def download() -> Response:
        return _file(await form_fields(MAX_CONSOLE_FORM))

    return routes


async def _opened(arguments: Fields, at_a_time: trio.CapacityLimiter) -> dict[str, Any]:
    """Returns the values of the page with an example and its first question."""
    example = examples().get(arguments.get("example", ""), examples()[FIRST_EXAMPLE])
    number = arguments.get("question", "0")
    index = int(number) if number in map(str, range(len(example.questions))) else 0
    return await _tried(example.document, example.questions[index].question, at_a_time, example)


async def _asked(form: Fields, at_a_time: trio.CapacityLimiter) -> dict[str, Any]:
    text, question = form.get("document", ""), DocumentQuestion.of(form)
    example = examples().get(form.get("example", ""))
    try:
        if form.get("add"):
            text = await trio.to_thread.run_sync(_with_addition, text, form, limiter=at_a_time)
    except FieldError as error:
        return _values(text, question, Trial(), example) | {"form": form} | FormError.of(error).values
    return await _tried(text, question, at_a_time, example)


async def _tried(
    text: str, question: DocumentQuestion, at_a_time: trio.CapacityLimiter, example: Example | None
) -> dict[str, Any]:
    """A document may take a while, so it is tried in a thread, one after the other, and few wait for their turn."""
    if at_a_time.statistics().tasks_waiting >= MAX_WAITING:
        return _values(text, question, Trial(), example) | FormError(BUSY, 429).values
    now = int(DatabaseClock().now())
    try:
        trial = await trio.to_thread.run_sync(partial(try_document, text, question, now), limiter=at_a_time)
    except FieldError as error:
        return _values(text, question, Trial(), example) | FormError.of(error).values
    return _values(text, question, trial, example)


def _values(text: str, question: DocumentQuestion, trial: Trial, example: Example | None) -> dict[str, Any]:
    choices = [(item.name, item.title) for item in examples().values()]
    shown = {"document": text, "question": question, "trial": trial, "form": {}}
    return shown | {"example": example, "examples": choices}


def _with_addition(text: str, form: Fields) -> str:
    document = read_fields(text) if text.strip() else {}
    add(document, form["add"], form)
    return as_text(document)


def _file(form: Fields) -> Response:
    """Returns the document as it was written, to be kept or shared."""
    headers = {"Content-Disposition": 'attachment; filename="playground.json"'}
    return Response(form.get("document", ""), headers=headers, content_type="application/json; charset=utf-8")
