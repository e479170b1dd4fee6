"""The test of the condition of a role."""

from typing import Any

from quart import Blueprint, Response, request

from sso.console.applications.editor_pages import ROLE
from sso.console.applications.pages import path_of
from sso.console.sections import APPLICATIONS
from sso.console.tester_pages import judge_form, show_tester, submitted_test
from sso.console.view import ConsoleView
from sso.perm.input.condition_notation import condition_text

TEMPLATE = "applications/tester.html"


def role_tester_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<application_id>/roles/<name>/test")
    async def show_role_tester(application_id: str, name: str) -> Response:
        visit = await console.open(APPLICATIONS)
        role = await visit.data("GET", ROLE, application_id=application_id, name=name)
        form = {"condition": condition_text(role["condition"]), "user": request.args.get("user", "")}
        return await show_tester(console, visit, TEMPLATE, form, **page_of(application_id, name))

    @routes.post("/<application_id>/roles/<name>/test")
    async def test_role(application_id: str, name: str) -> Response:
        visit, form = await submitted_test(console, APPLICATIONS)
        await visit.call("GET", ROLE, application_id=application_id, name=name)
        page = {**page_of(application_id, name), **await judge_form(visit, form)}
        return await show_tester(console, visit, TEMPLATE, form, **page)


def page_of(application_id: str, name: str) -> dict[str, Any]:
    base = path_of(application_id)
    return {
        "title": "Test the condition",
        "crumbs": [(base, f"Application {application_id}"), (f"{base}/roles/{name}", name)],
    }
