"""The audit trail: the list with its filters, an entry with its differences, and its undo."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import orjson
from quart import Blueprint, Response

from sso.console.audit.differences import differences
from sso.console.audit.sentence import Entry, as_text, named_in
from sso.console.audit.sentences import entry_scope, sentence_of
from sso.console.audit.targets import target_path
from sso.console.audit.undo_pages import ENTRY, undo_pages, why_not
from sso.console.list_pages import ListPage, Variables, add_list
from sso.console.sections import AUDIT
from sso.console.user_lookup import find_user_id
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.field_errors import FieldError

FILTERS = ("actor", "target", "operation", "since", "until")
CSV_COLUMNS = (
    "id", "at", "user_id", "service_id", "client_id", "key_id", "operator", "address", "operation", "target",
    "project_id", "application_id", "before", "after",
)  # fmt: skip


def audit_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(AUDIT)
    entries = ListPage(
        AUDIT,
        "/audit",
        "entries",
        "audit/list.html",
        CSV_COLUMNS,
        FILTERS,
        query=_query,
        row=_listed,
        named=_named,
        cells=_csv_record,
        shows_problems=True,
    )
    add_list(console, routes, entries)

    @routes.get("/<entry_id>")
    async def show_entry(entry_id: str) -> Response:
        visit = await console.open(AUDIT)
        entry = _listed(visit, await visit.data("GET", ENTRY, entry_id=entry_id))
        ids = named_in([entry["sentence"], entry_scope(entry)])
        names = await visit.names(ids)
        return await console.show(
            visit,
            "audit/entry.html",
            title=as_text(entry["sentence"], names),
            entry=entry,
            names=names,
            differences=differences(entry["before"], entry["after"]),
            why_not=await why_not(visit, entry),
        )

    undo_pages(console, routes)
    return routes


async def _query(visit: ConsoleVisit, filters: Mapping[str, str], _: Variables) -> Mapping[str, str]:
    """Returns the filters of the management API: users become ids, and days Unix seconds, with the day of ``until``."""
    query = dict(filters)
    if filters["actor"]:
        query["actor"] = await find_user_id(visit, filters["actor"], "actor")
    place, slash, user = filters["target"].rpartition("/")  # 11/ann@example.com: roles of the user at application 11
    if "@" in user:
        query["target"] = f"{place}{slash}{await find_user_id(visit, user, 'target')}"
    for name, days in (("since", 0), ("until", 1)):
        if filters[name]:
            try:
                day = datetime.strptime(filters[name], "%Y-%m-%d").replace(tzinfo=UTC)
            except ValueError:
                raise FieldError((name,), "must be a day such as 2030-01-31") from None
            query[name] = str(int(day.timestamp()) + days * 86400)
    return query


def _csv_record(entry: Entry) -> Entry:
    return entry | {name: orjson.dumps(entry[name]).decode() for name in ("before", "after") if entry[name]}


def _listed(visit: ConsoleVisit, entry: Entry) -> Entry:
    return {**entry, "sentence": sentence_of(entry), "target_path": target_path(visit, entry)}


def _named(entries: Sequence[Entry]) -> Mapping[str, Iterable[object]]:
    return named_in(entry["sentence"] for entry in entries)
