"""The pages of a user: profile, sign-ins, security; and the actions on a user."""

from typing import Any
from urllib.parse import urlencode

from quart import Blueprint, Response

from sso.console.form_error import FormError
from sso.console.sections import EXPLORER, USERS
from sso.console.users.form import CONFIRMED_FIELDS, changed_fields, typed_fields
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError
from sso.core.language_names import NAMES
from sso.web.redirects import see_other

USER = "/users/<user_id>"

EVERYTHING = {"limit": "1000"}  # a user has fewer sign-ins


def user_detail_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<user_id>")
    async def show_user(user_id: str) -> Response:
        visit = await console.open(USERS)
        return await profile(visit, await visit.data("GET", USER, user_id=user_id))

    @routes.post("/<user_id>")
    async def save(user_id: str) -> Response:
        visit, form = await console.submitted(USERS, "PATCH", USER, recent="by_caller")
        fields, version = typed_fields(form), form.get("version") or None
        fields.pop("password", None)
        user = await visit.data("GET", USER, user_id=user_id)
        is_important = any(fields.get(name, user[name]) != user[name] for name in CONFIRMED_FIELDS)
        await console.require_recent(visit, form, needed=is_important)
        try:
            await visit.call("PATCH", USER, user_id=user_id, body=fields, if_match=version)
        except ApiError as error:
            user = await visit.data("GET", USER, user_id=user_id)
            return await profile(visit, user, changed_fields(form), FormError.of(error))
        return done(path_of(user_id), "user-saved")

    async def profile(
        visit: ConsoleVisit,
        user: dict[str, Any],
        values: dict[str, Any] | None = None,
        error: FormError | None = None,
    ) -> Response:
        version = version_of(user)
        context = {"values": {**user, **(values or {})}, "version": version, "languages": NAMES}
        return await show(visit, user, "profile", **context, **problem(error))

    async def show(visit: ConsoleVisit, user: dict[str, Any], tab: str, **context: Any) -> Response:
        return await console.show(
            visit,
            f"users/{tab}.html",
            title=user["nick"] or user["login"],
            crumbs=[(path_of(user["user_id"]), user["login"])] if tab != "profile" else [],
            account=user,
            base=path_of(user["user_id"]),
            tab=tab,
            protection=await visit.protection_of(user["user_id"]) if visit.may("PATCH", USER) else "",
            **context,
        )

    @routes.get("/<user_id>/sign-ins")
    async def show_sign_ins(user_id: str) -> Response:
        visit = await console.open(USERS)
        user = await visit.data("GET", USER, user_id=user_id)
        sessions = await visit.data("GET", f"{USER}/sessions", query=EVERYTHING, user_id=user_id)
        games = await visit.data("GET", f"{USER}/games", query=EVERYTHING, user_id=user_id)
        return await show(visit, user, "sign_ins", sessions=sessions, games=games)

    @routes.get("/<user_id>/security")
    async def show_security(user_id: str) -> Response:
        visit = await console.open(USERS)
        user = await visit.data("GET", USER, user_id=user_id)
        return await show(visit, user, "security", factors=await read_factors(visit, user_id))

    @routes.get("/<user_id>/permissions")
    async def show_permissions(user_id: str) -> Response:
        await console.open(USERS)
        return see_other(f"{EXPLORER.path}?{urlencode({'user': user_id})}")

    @routes.post("/<user_id>/password")
    async def set_password(user_id: str) -> Response:
        visit, form = await console.submitted(USERS, "PATCH", USER)
        try:
            await visit.call("PATCH", USER, user_id=user_id, body={"password": form.get("password", "")})
        except ApiError as error:
            user = await visit.data("GET", USER, user_id=user_id)
            factors = await read_factors(visit, user_id)
            return await show(visit, user, "security", factors=factors, **problem(FormError.of(error)))
        return done(f"{path_of(user_id)}/security", "password-set")

    user_actions(console, routes)


async def read_factors(visit: ConsoleVisit, user_id: str) -> dict[str, int]:
    """Returns the second factors that are turned on, and how many there are of each."""
    factors = await visit.data("GET", f"{USER}/factors", user_id=user_id)
    return {factor["type"]: factor["count"] for factor in factors}


def user_actions(console: ConsoleView, routes: Blueprint) -> None:
    """The actions that need no form of their own. Those that take something away need recent authentication."""

    @routes.post("/<user_id>/disable")
    async def disable(user_id: str) -> Response:
        visit, _ = await console.submitted(USERS, "PATCH", USER)
        await visit.call("PATCH", USER, user_id=user_id, body={"disabled": True})
        return done(path_of(user_id), "user-disabled")

    @routes.post("/<user_id>/enable")
    async def enable(user_id: str) -> Response:
        visit, form = await console.submitted(USERS, "PATCH", USER)
        await visit.call("PATCH", USER, user_id=user_id, body={"disabled": False})
        return done(path_of(user_id), "user-kept" if form.get("keep") else "user-enabled")

    @routes.post("/<user_id>/delete")
    async def delete(user_id: str) -> Response:
        visit, _ = await console.submitted(USERS, "DELETE", USER)
        await visit.call("DELETE", USER, user_id=user_id)
        return done(path_of(user_id), "user-deleted")

    @routes.post("/<user_id>/sessions/end")
    async def end_sessions(user_id: str) -> Response:
        visit, _ = await console.submitted(USERS, "DELETE", f"{USER}/sessions", recent="never")
        await visit.call("DELETE", f"{USER}/sessions", user_id=user_id)
        return done(f"{path_of(user_id)}/sign-ins", "sessions-ended")

    @routes.post("/<user_id>/sessions/<session_id>/end")
    async def end_session(user_id: str, session_id: str) -> Response:
        visit, _ = await console.submitted(USERS, "DELETE", f"{USER}/sessions/<session_id>", recent="never")
        await visit.call("DELETE", f"{USER}/sessions/<session_id>", user_id=user_id, session_id=session_id)
        return done(f"{path_of(user_id)}/sign-ins", "session-ended")

    @routes.post("/<user_id>/games/end")
    async def end_game(user_id: str) -> Response:
        """A game may have several sign-ins, which the page shows as one."""
        visit, form = await console.submitted(USERS, "DELETE", f"{USER}/games/<sign_in_id>", recent="never")
        for sign_in_id in form.get("ids", "").split():
            await visit.call("DELETE", f"{USER}/games/<sign_in_id>", user_id=user_id, sign_in_id=sign_in_id)
        return done(f"{path_of(user_id)}/sign-ins", "game-ended")

    @routes.post("/<user_id>/factors/reset")
    async def reset_factors(user_id: str) -> Response:
        visit, _ = await console.submitted(USERS, "DELETE", f"{USER}/factors")
        await visit.call("DELETE", f"{USER}/factors", user_id=user_id)
        return done(f"{path_of(user_id)}/security", "factors-reset")


def path_of(user_id: str) -> str:
    return f"{USERS.path}/{user_id}"
