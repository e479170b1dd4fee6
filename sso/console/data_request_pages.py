"""What games were asked about the data of users: for exports, and to remove it."""

from collections.abc import Iterable, Mapping, Sequence

from quart import Blueprint

from sso.console.form_pages import Action, add_actions
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.sections import DATA_REQUESTS
from sso.console.user_lookup import find_user_id
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit

FILTERS = ("kind", "state", "application_id", "user_id")
CSV_COLUMNS = ("id", "request_id", "kind", "state", "user_id", "application_id", "created", "finished", "tries",
               "next_try", "deadline", "problem")  # fmt: skip
KINDS = {"data": "Data for an export", "characters": "Characters for an export", "remove": "Removal"}
STATES = {"pending": "Is sent", "waiting": "Waits for the game", "done": "Done", "failed": "Failed"}
RETRY = Action(
    "/<number>/retry",
    "POST",
    "/data-requests/<number>/retry",
    "data-request-retried",
    lambda _: DATA_REQUESTS.path,
    recent="never",
)


def data_request_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(DATA_REQUESTS)
    requests = ListPage(
        DATA_REQUESTS,
        "/data-requests",
        "requests",
        "data_requests/list.html",
        CSV_COLUMNS,
        FILTERS,
        page=_values,
        query=_query,
        row=_listed,
        named=_named,
        shows_problems=True,
    )
    add_list(console, routes, requests)
    add_actions(console, routes, DATA_REQUESTS, RETRY)
    return routes


def _listed(_visit: ConsoleVisit, record: Record) -> Record:
    return {
        **record,
        "kind_text": KINDS[record["kind"]],
        "state_text": STATES[record["state"]],
        "can_retry": record["state"] in ("pending", "failed"),
    }


def _named(requests: Sequence[Record]) -> Mapping[str, Iterable[object]]:
    return {
        "application": [record["application_id"] for record in requests],
        "user": [record["user_id"] for record in requests if record["kind"] != "remove"],
    }


async def _values(_visit: ConsoleVisit, _variables: Variables) -> Record:
    return {"kinds": list(KINDS.items()), "states": list(STATES.items())}


async def _query(visit: ConsoleVisit, filters: Mapping[str, str], _: Variables) -> Mapping[str, str]:
    """A user may be an erased one, who is found by the id alone."""
    user = filters["user_id"]
    is_login = bool(user) and not user.isdecimal()
    return {**filters, "user_id": await find_user_id(visit, user, "user_id") if is_login else user}
