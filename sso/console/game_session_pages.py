"""The logins of games that are in progress, live."""

from collections.abc import Iterable, Mapping, Sequence

from quart import Blueprint, current_app

from sso.console.form_pages import Action, add_actions
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.sections import GAME_SESSIONS
from sso.console.user_lookup import find_user_id
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.gsid.session_directory_store import STAGES

FILTERS = ("stage", "application_id", "address", "user_id")
CSV_COLUMNS = ("id", "stage", "created", "ends", "address", "application_id", "gapp_id", "distr", "user_id")
ENDED_STAGES = ("delivered", "closed", "denied", "expired")  # the page of the user signs out of a delivered login
END = Action(
    "/<gsid>/end",
    "DELETE",
    "/game-sessions/<gsid>",
    "game-session-ended",
    lambda _: GAME_SESSIONS.path,
    recent="never",
)


def game_session_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(GAME_SESSIONS)
    sessions = ListPage(
        GAME_SESSIONS,
        "/game-sessions",
        "sessions",
        "game_sessions/list.html",
        CSV_COLUMNS,
        FILTERS,
        page=_values,
        query=_query,
        row=_listed,
        named=_named,
        shows_problems=True,
    )
    add_list(console, routes, sessions)
    add_actions(console, routes, GAME_SESSIONS, END)
    return routes


def _listed(_visit: ConsoleVisit, session: Record) -> Record:
    waiting = "Connected by WebSocket" if session["socket"] else "Polling" if session["polled"] else ""
    return {
        **session,
        "application": session["gapp_id"] or session["application_id"],
        "age_text": _duration(session["age"]),
        "waiting": waiting,
        "can_end": "gsid" in session and session["stage"] not in ENDED_STAGES,
    }


def _named(sessions: Sequence[Record]) -> Mapping[str, Iterable[object]]:
    return {
        "application": [session["application"] for session in sessions],
        "user": [session["user_id"] for session in sessions],
    }


def _duration(seconds: int) -> str:
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


async def _values(_visit: ConsoleVisit, _variables: Variables) -> Record:
    stages = [(stage, stage.replace("_", " ").capitalize()) for stage in STAGES]
    return {"base_url": current_app.config["BASE_URL"], "stages": stages}


async def _query(visit: ConsoleVisit, filters: Mapping[str, str], _: Variables) -> Mapping[str, str]:
    user = filters["user_id"]
    return {**filters, "user_id": await find_user_id(visit, user, "user_id") if user else ""}
