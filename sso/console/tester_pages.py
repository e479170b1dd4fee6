"""The test of conditions: "does this user at this address match?", for groups of projects and roles of applications."""

from typing import Any

from quart import Response, request

from sso.console.condition_fields import read_condition
from sso.console.form_error import FormError
from sso.console.sections import ConsoleSection
from sso.console.users.form import split_list
from sso.console.users.pages import problem
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.perm.engine.explanation.text import comparison_text

TEST = "/conditions/test"


async def show_tester(
    console: ConsoleView, visit: ConsoleVisit, template: str, form: dict[str, str], **page: Any
) -> Response:
    return await console.show(
        visit, template, values=form, action=request.path, comparison_text=comparison_text, **{"outcome": None, **page}
    )


async def judge_form(visit: ConsoleVisit, form: dict[str, str]) -> dict[str, Any]:
    """Returns the template values of the outcome, or of the problem with the form."""
    try:
        return {"outcome": await visit.data("POST", TEST, body=question(form))}
    except ApiError as error:
        return problem(FormError.of(error))


async def submitted_test(console: ConsoleView, section: ConsoleSection) -> tuple[ConsoleVisit, dict[str, str]]:
    return await console.submitted(section, "POST", TEST, recent="never")


def question(form: dict[str, str]) -> dict[str, Any]:
    """Returns the body of the request. The facts of the form are sent if they are not empty."""
    body: dict[str, Any] = {}
    if form.get("group_id"):
        body["group_id"] = form["group_id"]
    else:
        body["condition"] = read_condition(form.get("condition", ""), "condition")
    body |= {name: form[name].strip() for name in ("user", "address", "domain") if form.get(name, "").strip()}
    return body | {name: split_list(form[name]) for name in ("tags", "purchases") if form.get(name, "").strip()}
