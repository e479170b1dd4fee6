"""The test of conditions: "does this user at this address match?", for groups of projects and roles of applications."""

from typing import Any

from quart import Blueprint, Response, request

from sso.console.applications.editor_pages import ROLE
from sso.console.applications.pages import path_of
from sso.console.condition_fields import read_condition
from sso.console.form_error import FormError
from sso.console.projects.frame import group_choices, project_page, read_project
from sso.console.sections import APPLICATIONS, PROJECTS, ConsoleSection
from sso.console.users.form import split_list
from sso.console.users.pages import problem
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.perm.engine.explanation.text import comparison_text
from sso.perm.input.condition_notation import condition_text

ROLE_TEMPLATE = "applications/tester.html"
PROJECT_TEMPLATE = "projects/tester.html"
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


def role_tester_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<application_id>/roles/<name>/test")
    async def show_role_tester(application_id: str, name: str) -> Response:
        visit = await console.open(APPLICATIONS)
        role = await visit.data("GET", ROLE, application_id=application_id, name=name)
        form = {"condition": condition_text(role["condition"]), "user": request.args.get("user", "")}
        return await show_tester(console, visit, ROLE_TEMPLATE, form, **page_of(application_id, name))

    @routes.post("/<application_id>/roles/<name>/test")
    async def test_role(application_id: str, name: str) -> Response:
        visit, form = await submitted_test(console, APPLICATIONS)
        await visit.call("GET", ROLE, application_id=application_id, name=name)
        page = {**page_of(application_id, name), **await judge_form(visit, form)}
        return await show_tester(console, visit, ROLE_TEMPLATE, form, **page)


def page_of(application_id: str, name: str) -> dict[str, Any]:
    base = path_of(application_id)
    return {
        "title": "Test the condition",
        "crumbs": [(base, f"Application {application_id}"), (f"{base}/roles/{name}", name)],
    }


def project_tester_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<project_id>/tester")
    async def show_project_tester(project_id: str) -> Response:
        visit = await console.open(PROJECTS)
        project = await read_project(visit, project_id)
        form = {name: request.args.get(name, "") for name in ("group_id", "user")}
        choices = await group_choices(visit, project_id)
        return await show_tester(
            console, visit, PROJECT_TEMPLATE, form, group_choices=choices, **project_page(project, "tester")
        )

    @routes.post("/<project_id>/tester")
    async def test_group(project_id: str) -> Response:
        visit, form = await submitted_test(console, PROJECTS)
        project = await read_project(visit, project_id)
        outcome = await judge_form(visit, form)
        choices = await group_choices(visit, project_id)
        page = {**project_page(project, "tester"), **outcome}
        return await show_tester(console, visit, PROJECT_TEMPLATE, form, group_choices=choices, **page)
