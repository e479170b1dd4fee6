"""The test of conditions of groups of a project."""

from quart import Blueprint, Response, request

from sso.console.projects.frame import group_choices, project_page, read_project
from sso.console.sections import PROJECTS
from sso.console.tester_pages import judge_form, show_tester, submitted_test
from sso.console.view import ConsoleView

TEMPLATE = "projects/tester.html"


def project_tester_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<project_id>/tester")
    async def show_project_tester(project_id: str) -> Response:
        visit = await console.open(PROJECTS)
        project = await read_project(visit, project_id)
        form = {name: request.args.get(name, "") for name in ("group_id", "user")}
        choices = await group_choices(visit, project_id)
        return await show_tester(
            console, visit, TEMPLATE, form, group_choices=choices, **project_page(project, "tester")
        )

    @routes.post("/<project_id>/tester")
    async def test_group(project_id: str) -> Response:
        visit, form = await submitted_test(console, PROJECTS)
        project = await read_project(visit, project_id)
        outcome = await judge_form(visit, form)
        choices = await group_choices(visit, project_id)
        page = {**project_page(project, "tester"), **outcome}
        return await show_tester(console, visit, TEMPLATE, form, group_choices=choices, **page)
