"""The audit trail: the list with its filters, an entry with its differences, and its undo."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import orjson
from quart import Blueprint, Response, request

from sso.console.audit.differences import differences
from sso.console.audit.targets import target_path
from sso.console.audit.undo_pages import ENTRY, undo_pages, why_not
from sso.console.form_error import FormError
from sso.console.lists import exported_pages
from sso.console.sections import AUDIT
from sso.console.user_lookup import find_user_id, shown_while_typing
from sso.console.users.pages import problem
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.web.csv_response import streamed_csv_response

FILTERS = ("actor", "target", "operation", "since", "until")
CSV_COLUMNS = (
    "id", "at", "user_id", "service_id", "client_id", "key_id", "operator", "address", "operation", "target",
    "project_id", "application_id", "before", "after",
)  # fmt: skip


def audit_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(AUDIT)

    @routes.get("")
    async def show_list() -> Response:
        visit = await console.open(AUDIT)
        filters = {name: request.args.get(name, "").strip() for name in FILTERS}
        entries, next_after, error = [], None, None
        try:
            query = await _query(visit, filters)
            found = await visit.call("GET", "/audit", query={**query, "after": request.args.get("after", "")})
            entries, next_after = found.members["data"], found.members.get("next")
        except ApiError as refused:
            error = shown_while_typing(FormError.of(refused), is_htmx=bool(request.headers.get("HX-Request")))
        chosen = {name: value for name, value in filters.items() if value}
        return await console.show(
            visit,
            "audit/list.html",
            title="Audit trail",
            entries=[_listed(visit, entry) for entry in entries],
            next=next_after,
            filters=filters,
            query=urlencode(chosen),
            **problem(error),
        )

    @routes.get("/export.csv")
    async def export() -> Response:
        visit = await console.open_export(AUDIT)
        filters = {name: request.args.get(name, "").strip() for name in FILTERS}
        pages = exported_pages(visit, "/audit", await _query(visit, filters))
        return await streamed_csv_response("audit", CSV_COLUMNS, pages, _csv_record)

    @routes.get("/<entry_id>")
    async def show_entry(entry_id: str) -> Response:
        visit = await console.open(AUDIT)
        entry = await visit.data("GET", ENTRY, entry_id=entry_id)
        return await console.show(
            visit,
            "audit/entry.html",
            title=entry["operation"],
            entry=_listed(visit, entry),
            differences=differences(entry["before"], entry["after"]),
            why_not=await why_not(visit, entry),
        )

    undo_pages(console, routes)
    return routes


async def _query(visit: ConsoleVisit, filters: dict[str, str]) -> dict[str, str]:
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


def _csv_record(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {name: orjson.dumps(entry[name]).decode() for name in ("before", "after") if entry[name]}


def _listed(visit: ConsoleVisit, entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "summary": _summary(entry), "target_path": target_path(visit, entry)}


def _summary(entry: dict[str, Any]) -> str:
    """Returns the names of the changed fields."""
    if entry["before"] is None and entry["operation"].endswith((".create", ".publish", "role.save")):
        return "everything is new"
    changed = differences(entry["before"], entry["after"])
    return ", ".join(dict.fromkeys(difference.field.partition(".")[0] for difference in changed))
