"""Pages that ask before a record is deleted: what ends, who loses what, and whether it can be undone."""

import unicodedata
from calendar import month_name
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from quart import Blueprint, Response, request

from sso.console.form_error import FormError
from sso.console.impact import impact_values
from sso.console.list_pages import Record, Variables
from sso.console.sections import ConsoleSection
from sso.console.view import ConsoleView, Crumbs, RecentAuthenticationOf, add_page, done
from sso.console.visit import ConsoleVisit, variables_of
from sso.core.errors import ApiError, Forbidden

MAX_COUNTED = 1000  # more are not counted: the page must open at once
MAX_NAMES = 5


class StoredRecord(Struct, frozen=True):
    members: Record  # of the response that has the record
    version: str = ""  # so that a record that was changed meanwhile is not deleted

    @property
    def data(self) -> Record:
        return dict(self.members["data"])


class Consequences(Struct, frozen=True):
    """What the page says about the record."""

    name: str  # as people know the record
    ends: Sequence[str]  # sentences
    undo: str  # whether it can be undone, and what comes back then
    back: str  # the page that the question was asked on
    crumbs: Crumbs = ()
    asks_name: bool = False  # of a record that many others depend on
    shows_effect: bool = True  # the users who lose permissions are few enough to be listed


class DeletionPage(Struct, frozen=True):
    section: ConsoleSection
    path: str  # below that of the section
    operation: str  # whose DELETE it is
    noun: str
    notice: str
    next_path: Callable[[Variables], str]
    describe: Callable[[ConsoleVisit, StoredRecord, Variables], Awaitable[Consequences]]
    verb: str = "Delete"
    has_dry_run: bool = False
    recent: RecentAuthenticationOf = "always"
    read: Callable[[ConsoleVisit, Variables], Awaitable[StoredRecord]] | None = None  # in place of its GET

    async def stored(self, visit: ConsoleVisit, variables: Variables) -> StoredRecord:
        if self.read is not None:
            return await self.read(visit, variables)
        found = await visit.call("GET", self.operation, **variables_of(self.operation, variables))
        return StoredRecord(dict(found.members), found.headers.get("ETag", ""))


def add_deletion(console: ConsoleView, routes: Blueprint, page: DeletionPage) -> None:
    async def show(
        visit: ConsoleVisit,
        variables: Variables,
        stored: StoredRecord,
        consequences: Consequences,
        error: FormError | None = None,
    ) -> Response:
        shows_effect = page.has_dry_run and consequences.shows_effect
        wants_effect = shows_effect and (error is not None or "effect" in request.args)
        return await console.show(
            visit,
            "delete.html",
            title=f"{page.verb} the {page.noun}",
            consequences=consequences,
            crumbs=consequences.crumbs,
            button=f"{page.verb} {page.noun}",
            action=request.path,
            version=stored.version,
            has_dry_run=page.has_dry_run,
            shows_effect=shows_effect,
            **(await effect(visit, variables) if wants_effect else {}),
            **(error.values if error else {}),
        )

    async def effect(visit: ConsoleVisit, variables: Variables) -> Record:
        named = variables_of(page.operation, variables)
        try:
            found = await visit.call("DELETE", page.operation, query={"dry_run": "1"}, **named)
        except ApiError as error:
            return {"impact_problem": FormError.of(error).text}
        return await impact_values(visit, dict(found.members), application_id=variables.get("application_id"))

    async def ask(**variables: str) -> Response:
        visit = await console.open(page.section)
        visit.require("DELETE", page.operation)
        stored = await page.stored(visit, variables)
        return await show(visit, variables, stored, await page.describe(visit, stored, variables))

    async def delete(**variables: str) -> Response:
        visit, form = await console.submitted(page.section, "DELETE", page.operation, recent=page.recent)
        stored = await page.stored(visit, variables)
        consequences = await page.describe(visit, stored, variables)
        if consequences.asks_name and not is_same_name(form.get("name", ""), consequences.name):
            error = FormError(f"Type the name as it is written here: {consequences.name}", field="name")
            return await show(visit, variables, stored, consequences, error)
        options: dict[str, Any] = {"query": {"override": "1"}} if page.has_dry_run and "override" in form else {}
        named = variables_of(page.operation, variables)
        try:
            await visit.call("DELETE", page.operation, if_match=form.get("version") or None, **options, **named)
        except ApiError as error:
            return await show(visit, variables, stored, consequences, FormError.of(error))
        return done(page.next_path(variables), page.notice)

    add_page(routes, "GET", page.path, ask)
    add_page(routes, "POST", page.path, delete)


def is_same_name(typed: str, name: str) -> bool:
    """Capital letters and spaces do not matter: the name must be read, not copied exactly."""
    return _plain(typed) == _plain(name)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def count_text(number: int, one: str, many: str = "") -> str:
    """Returns "1 user", "12 users" or "more than 1,000 users" for a number that was counted up to one more."""
    if number > MAX_COUNTED:
        return f"more than {MAX_COUNTED:,} {many or f'{one}s'}"
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


async def count_records(
    visit: ConsoleVisit, path: str, query: Mapping[str, str] | None = None, **variables: Any
) -> int | None:
    """Returns how many records a list has, counted up to one more than MAX_COUNTED; None if it may not be read."""
    try:
        found = await visit.call("GET", path, query={**(query or {}), "limit": str(MAX_COUNTED)}, **variables)
    except Forbidden:
        return None
    return len(found.members["data"]) + bool(found.members.get("next"))


def and_more(names: Sequence[str]) -> str:
    """Returns the first names with commas between them."""
    return ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else "")


def day_text(moment: str) -> str:
    """Returns the day of a moment in RFC 3339, such as "1 December 2026"."""
    return f"{int(moment[8:10])} {month_name[int(moment[5:7])]} {moment[:4]}"
