"""The effective permissions of a user at an application, and the reasons for one of them."""

from quart import Blueprint, Response, request

from sso.console.form_error import FormError
from sso.console.sections import USERS
from sso.console.users.detail_pages import USER, path_of
from sso.console.users.pages import problem
from sso.console.view import ConsoleView
from sso.core.errors import ApiError
from sso.perm.engine.explanation.text import end_text, explanation_lines, params_text
from sso.web.body import InvalidBody


def user_permission_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<user_id>/permissions")
    async def show_permissions(user_id: str) -> Response:
        visit = await console.open(USERS)
        user = await visit.data("GET", USER, user_id=user_id)
        application_id = request.args.get("application_id", "").strip() or "1"
        rule = request.args.get("explain", "").strip()
        query = {"application_id": application_id, "explain": rule}
        error, rules, roles, explained = None, [], [], {}
        try:
            found = await visit.call("GET", f"{USER}/permissions", user_id=user_id, query=query)
            rules = found.members["data"]
            explained = found.members.get("explain", {})
            roles = await visit.data(
                "GET", f"{USER}/permissions", user_id=user_id, query={**query, "explain": "", "type": "roles"}
            )
        except (ApiError, InvalidBody) as refused:
            error = FormError.of(refused)
        return await console.show(
            visit,
            "users/permissions.html",
            title=user["nick"] or user["login"],
            crumbs=[(path_of(user_id), user["login"])],
            account=user,
            base=path_of(user_id),
            tab="permissions",
            application_id=application_id,
            rule=rule,
            rules=rules,
            roles=roles,
            explained=explained,
            explanation=list(explanation_lines(explained)) if explained else [],
            extra=params_text(explained) + end_text(explained) if explained else "",
            **problem(error),
        )
