"""The list of users, the forms that create and invite users."""

from typing import Any

from quart import Blueprint, Response, request

from sso.console.export_pages import add_export
from sso.console.form_error import FormError
from sso.console.sections import USERS
from sso.console.users.form import changed_fields, typed_fields
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.core.language_names import NAMES

CSV_COLUMNS = (
    "user_id", "login", "nick", "country", "lang", "level", "tags", "purchases", "email_verified", "second_factors",
    "disabled", "reg_time", "deletion_due", "deletion_by",
)  # fmt: skip


def user_list_pages(console: ConsoleView, *, can_invite: bool) -> Blueprint:
    routes = console.blueprint(USERS)
    add_export(console, routes, USERS, "/users", CSV_COLUMNS)

    @routes.get("")
    async def show_list() -> Response:
        visit = await console.open(USERS)
        search, after = request.args.get("search", "").strip(), request.args.get("after", "")
        found = await visit.call("GET", "/users", query={"search": search, "after": after})
        return await console.show(
            visit,
            "users/list.html",
            title="Users",
            search=search,
            after=after,
            users=found.members["data"],
            next=found.members.get("next"),
        )

    @routes.get("/new")
    async def show_form() -> Response:
        return await show_new(await console.open(USERS), {})

    @routes.post("/new")
    async def create() -> Response:
        visit, form = await console.submitted(USERS, "POST", "/users")
        filled = {name: value for name, value in typed_fields(form).items() if value}
        try:
            user = await visit.data("POST", "/users", body=filled)
        except ApiError as error:
            return await show_new(visit, form, FormError.of(error))
        return done(f"{USERS.path}/{user['user_id']}", "user-created")

    async def show_new(visit: ConsoleVisit, form: dict[str, str], error: FormError | None = None) -> Response:
        visit.require("POST", "/users")
        return await console.show(
            visit,
            "users/new.html",
            title="New user",
            values=changed_fields(form),
            languages=NAMES,
            **problem(error),
        )

    @routes.get("/invitations")
    async def show_invitations() -> Response:
        return await invitations(await console.open(USERS))

    @routes.post("/invitations")
    async def invite() -> Response:
        visit, form = await console.submitted(USERS, "POST", "/invitations")
        body: dict[str, Any] = {"login": form.get("login", "").strip(), "lang": form.get("lang", "")}
        body["days"] = int(form["days"]) if form.get("days", "").isdecimal() else form.get("days")
        try:
            created = await visit.data("POST", "/invitations", body=body)
        except ApiError as error:
            return await invitations(visit, form, error=FormError.of(error))
        return await invitations(visit, created=created)

    @routes.post("/invitations/<invitation_id>/revoke")
    async def revoke(invitation_id: str) -> Response:
        visit, _ = await console.submitted(USERS, "DELETE", "/invitations/<invitation_id>", recent="never")
        await visit.call("DELETE", "/invitations/<invitation_id>", invitation_id=invitation_id)
        return done(f"{USERS.path}/invitations", "invitation-revoked")

    async def invitations(
        visit: ConsoleVisit,
        form: dict[str, str] | None = None,
        *,
        created: dict[str, Any] | None = None,
        error: FormError | None = None,
    ) -> Response:
        after = request.args.get("after", "")
        found = await visit.call("GET", "/invitations", query={"after": after})
        return await console.show(
            visit,
            "users/invitations.html",
            title="Invitations",
            invitations=found.members["data"],
            next=found.members.get("next"),
            after=after,
            values=form or {},
            created=created,
            languages=NAMES,
            can_invite=can_invite,
            **problem(error),
        )

    return routes


def problem(error: FormError | None) -> dict[str, Any]:
    """Returns the template values of a form that was refused."""
    return {"problem": error.text, "problem_field": error.field, "status": error.status} if error else {}
