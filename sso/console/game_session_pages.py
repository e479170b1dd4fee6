"""The logins of games that are in progress, live."""

from urllib.parse import urlencode

from quart import Blueprint, Response, current_app, request

from sso.console.export_pages import add_export
from sso.console.form_error import FormError
from sso.console.sections import GAME_SESSIONS
from sso.console.user_lookup import find_user_id, shown_while_typing
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.core.errors import ApiError
from sso.gsid.session_directory import STAGES

FILTERS = ("stage", "application_id", "address", "user_id")
CSV_COLUMNS = ("id", "stage", "created", "ends", "address", "application_id", "gapp_id", "distr", "user_id")


def game_session_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(GAME_SESSIONS)
    add_export(console, routes, GAME_SESSIONS, "/game-sessions", CSV_COLUMNS, FILTERS)

    @routes.get("")
    async def show_list() -> Response:
        visit = await console.open(GAME_SESSIONS)
        filters = {name: request.args.get(name, "").strip() for name in FILTERS}
        sessions, next_after, error = [], None, None
        try:
            query = {**filters, "after": request.args.get("after", "")}
            query["user_id"] = await find_user_id(visit, user, "user_id") if (user := filters["user_id"]) else ""
            found = await visit.call("GET", "/game-sessions", query=query)
            sessions, next_after = found.members["data"], found.members.get("next")
        except ApiError as refused:
            error = shown_while_typing(FormError.of(refused), is_htmx=bool(request.headers.get("HX-Request")))
        return await console.show(
            visit,
            "game_sessions/list.html",
            title="Game sessions",
            sessions=sessions,
            next=next_after,
            filters=filters,
            base_url=current_app.config["BASE_URL"],
            stages=[(stage, stage.replace("_", " ").capitalize()) for stage in STAGES],
            query=urlencode({name: value for name, value in filters.items() if value}),
            **problem(error),
        )

    @routes.post("/<gsid>/end")
    async def terminate(gsid: str) -> Response:
        visit, _ = await console.submitted(GAME_SESSIONS, "DELETE", "/game-sessions/<gsid>", recent="never")
        await visit.call("DELETE", "/game-sessions/<gsid>", gsid=gsid)
        return done(GAME_SESSIONS.path, "game-session-ended")

    return routes
