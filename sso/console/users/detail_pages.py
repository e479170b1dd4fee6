"""The pages of a user: profile, sign-ins, security; and the actions on a user."""

from typing import Any
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from sso.console.deletion_pages import (
    Consequences,
    DeletionPage,
    StoredRecord,
    add_deletion,
    and_more,
    count_records,
    count_text,
    day_text,
)
from sso.console.form_pages import Action, Form, FormPage, add_actions, add_form
from sso.console.list_pages import Record, Variables
from sso.console.record_names import user_name
from sso.console.sections import EXPLORER, USERS
from sso.console.users.form import CONFIRMED_FIELDS, changed_fields
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.language_names import NAMES
from sso.web.redirects import see_other

USER = "/users/<user_id>"

EVERYTHING = {"limit": "1000"}  # a user has fewer sign-ins


def user_detail_pages(console: ConsoleView, routes: Blueprint, deletion_days: int) -> None:
    async def profile(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any) -> Response:
        user = await visit.data("GET", USER, **variables)
        values = {**user, **changed_fields(form or {})}
        languages = _language_choices(user["lang"], values["lang"])
        return await show(
            visit, user, "profile", values=values, version=version_of(user), languages=languages, **problem
        )

    async def security(visit: ConsoleVisit, variables: Variables, _: Form | None, /, **problem: Any) -> Response:
        user = await visit.data("GET", USER, **variables)
        factors = await visit.data("GET", f"{USER}/factors", **variables)
        counts = {factor["type"]: factor["count"] for factor in factors}  # only factors that are turned on
        return await show(visit, user, "security", factors=counts, **problem)

    async def show(visit: ConsoleVisit, user: Record, tab: str, **context: Any) -> Response:
        return await console.show(
            visit,
            f"users/{tab}.html",
            **frame_of(user, tab),
            protection=await visit.protection_of(user["user_id"]) if visit.may("PATCH", USER) else "",
            deletion_days=deletion_days,
            **(_closed_notice(user) if request.args.get("done") == "user-deleted" else {}),
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
        return await security(await console.open(USERS), {"user_id": user_id}, None)

    @routes.get("/<user_id>/permissions")
    async def show_permissions(user_id: str) -> Response:
        await console.open(USERS)
        return see_other(f"{EXPLORER.path}?{urlencode({'user': user_id})}")

    add_form(
        console,
        routes,
        FormPage(
            USERS,
            "/<user_id>",
            "PATCH",
            USER,
            lambda form, _: changed_fields(form),
            profile,
            "user-saved",
            lambda _, variables: own_page(variables),
            is_important=lambda user, body: any(body.get(name, user[name]) != user[name] for name in CONFIRMED_FIELDS),
            opens=True,
        ),
    )
    add_form(
        console,
        routes,
        FormPage(
            USERS,
            "/<user_id>/password",
            "PATCH",
            USER,
            lambda form, _: {"password": form.get("password", "")},
            security,
            "password-set",
            lambda _, variables: security_page(variables),
        ),
    )
    add_actions(console, routes, USERS, *ACTIONS)
    add_deletion(console, routes, user_deletion(deletion_days))

    @routes.post("/<user_id>/enable")
    async def enable(user_id: str) -> Response:
        visit, form = await console.submitted(USERS, "PATCH", USER)
        await visit.call("PATCH", USER, user_id=user_id, body={"disabled": False})
        return done(path_of(user_id), "user-kept" if form.get("keep") else "user-enabled")

    @routes.post("/<user_id>/games/end")
    async def end_game(user_id: str) -> Response:
        """A game may have several sign-ins, which the page shows as one."""
        visit, form = await console.submitted(USERS, "DELETE", f"{USER}/games/<sign_in_id>", recent="never")
        for sign_in_id in form.get("ids", "").split():
            await visit.call("DELETE", f"{USER}/games/<sign_in_id>", user_id=user_id, sign_in_id=sign_in_id)
        return done(f"{path_of(user_id)}/sign-ins", "game-ended")


def user_deletion(days: int) -> DeletionPage:
    async def consequences(visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
        name, path = user_name(stored.data), own_page(variables)
        sessions = await count_records(visit, SESSIONS, **variables)
        games = await count_records(visit, f"{USER}/games", **variables)
        given = await visit.data("GET", f"{USER}/assignments", **variables)
        counted = [count_text(number, noun) for number, noun in ((sessions, "browser"), (games, "game")) if number]
        where = f" ({', '.join(counted)})" if counted else ""
        ends = [f"The user is signed out now{where}, and cannot sign in."]
        places = [*(item["name"] for item in given["applications"]), *(item["title"] for item in given["projects"])]
        if places:
            ends.append(f"Roles at {and_more(places)}, when the account is erased.")
        undo = f"The account is erased after {count_text(days, 'day')}; until then you can restore it."
        return Consequences(name, ends, undo, path, [(path, name)], asks_name=True)

    return DeletionPage(USERS, "/<user_id>/delete", USER, "account", "user-deleted", own_page, consequences)


def _language_choices(*present: str) -> dict[str, str]:
    """Returns the languages of the pages, and those that a user has besides: a browser sends one of the choices."""
    return {lang: lang or "Not stated" for lang in present if lang not in NAMES} | NAMES


def _closed_notice(user: Record) -> Record:
    """Says on which day the account that was just closed will be erased."""
    if not user["deletion_due"]:
        return {}
    return {"notice": f"The account has been closed. It will be erased on {day_text(user['deletion_due'])}."}


def frame_of(user: Record, tab: str) -> Record:
    """Returns the values of ``users/frame.html``."""
    title, path = user["nick"] or user_name(user), path_of(user["user_id"])
    crumbs = [] if tab == "profile" else [(path, user_name(user))]
    return {"title": title, "crumbs": crumbs, "account": user, "base": path, "tab": tab}


def path_of(user_id: str) -> str:
    return f"{USERS.path}/{user_id}"


def own_page(variables: Variables) -> str:
    return path_of(variables["user_id"])


def security_page(variables: Variables) -> str:
    return f"{own_page(variables)}/security"


def sign_ins_page(variables: Variables) -> str:
    return f"{own_page(variables)}/sign-ins"


SESSIONS, SESSION = f"{USER}/sessions", f"{USER}/sessions/<session_id>"
# Those that take something away need recent authentication.
ACTIONS = (
    Action("/<user_id>/disable", "PATCH", USER, "user-disabled", own_page, {"disabled": True}),
    Action("/<user_id>/sessions/end", "DELETE", SESSIONS, "sessions-ended", sign_ins_page, recent="never"),
    Action("/<user_id>/sessions/<session_id>/end", "DELETE", SESSION, "session-ended", sign_ins_page, recent="never"),
    Action("/<user_id>/factors/reset", "DELETE", f"{USER}/factors", "factors-reset", security_page),
)
