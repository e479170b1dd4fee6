"""The page that shows what the undo of a change would restore, and the undo itself."""

from typing import Any

from msgspec import Struct
from quart import Blueprint, Response

from sso.admin.request import AdminResponse
from sso.console.audit.differences import differences
from sso.console.audit.sentence import as_text, named_in
from sso.console.audit.sentences import sentence_of, undo_sentence_of
from sso.console.audit.undo import CannotUndo, Undo, Values
from sso.console.audit.undo_operations import undo_of
from sso.console.audit.undo_rights import require_undo_rights
from sso.console.form_error import FormError
from sso.console.impact import impact_values
from sso.console.sections import AUDIT
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError, Forbidden, NotFound

ENTRY = "/audit/<entry_id>"


class CurrentRecord(Struct, frozen=True):
    record: Values | None  # None: there is none
    version: str = ""


def undo_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<entry_id>/undo")
    async def preview(entry_id: str) -> Response:
        visit = await console.open(AUDIT)
        entry, undo, current = await find(visit, entry_id)
        if changed := undo.changed_since(current.record):
            return await undo_page(visit, entry, undo, current, error=_changed_since(changed))
        try:
            impact = (await _run(visit, undo, dry_run=True)).members if undo.has_dry_run else None
        except ApiError as error:
            return await undo_page(visit, entry, undo, current, error=FormError.of(error))
        return await undo_page(visit, entry, undo, current, impact=impact, can_undo=True)

    @routes.post("/<entry_id>/undo")
    async def confirm(entry_id: str) -> Response:
        visit, form = await console.submitted(AUDIT)
        entry, undo, current = await find(visit, entry_id)
        if changed := undo.changed_since(current.record):
            return await undo_page(visit, entry, undo, current, error=_changed_since(changed))
        try:
            version = form.get("version") or current.version
            restored = await _run(visit, undo, if_match=version or None, override="override" in form)
        except ApiError as error:
            return await undo_page(visit, entry, undo, current, error=FormError.of(error))
        record = restored.members.get("data") or {}
        if "client_secret" not in record:
            return done(AUDIT.path, "undone")
        return await console.show(
            visit,
            "audit/new_secret.html",
            title="The client has been restored",
            client_id=record["client_id"],
            secret=record["client_secret"],
        )

    async def find(visit: ConsoleVisit, entry_id: str) -> tuple[dict[str, Any], Undo, CurrentRecord]:
        entry = await visit.data("GET", ENTRY, entry_id=entry_id)
        return entry, *await _prepare(visit, entry)

    async def undo_page(
        visit: ConsoleVisit,
        entry: dict[str, Any],
        undo: Undo,
        current: CurrentRecord,
        *,
        error: FormError | None = None,
        impact: dict[str, Any] | None = None,
        can_undo: bool = False,
    ) -> Response:
        sentence, title = sentence_of(entry), undo_sentence_of(entry)
        names = await visit.names(named_in([sentence, title]))
        return await console.show(
            visit,
            "audit/undo.html",
            title=as_text(title, names),
            crumbs=[(f"{AUDIT.path}/{entry['id']}", as_text(sentence, names))],
            entry=entry,
            undo=undo,
            differences=differences(*undo.restored),
            version=current.version,
            **await impact_values(visit, impact),
            can_undo=can_undo,
            **(error.values if error else {}),
        )


async def why_not(visit: ConsoleVisit, entry: dict[str, Any]) -> str:
    """Returns why the administrator cannot undo an entry, or "" if it will work as far as is known without a dry run.

    A change of a user is cheap to try, and depends on the rights that this user has.
    """
    try:
        undo, current = await _prepare(visit, entry)
        if changed := undo.changed_since(current.record):
            return _changed_since(changed).text
        if undo.path == "/users/<user_id>":
            await _run(visit, undo, dry_run=True)
    except ApiError as error:
        return f"{error.message}."
    return ""


async def _prepare(visit: ConsoleVisit, entry: dict[str, Any]) -> tuple[Undo, CurrentRecord]:
    """Raises Forbidden if the entry cannot be undone, or not by this administrator."""
    undo = undo_of(entry, visit.caller.permissions.now)
    if isinstance(undo, CannotUndo):
        raise Forbidden(undo.reason)
    visit.require(undo.method, undo.path)
    current = await _read(visit, undo)
    require_undo_rights(visit.caller, undo, current.record)
    return undo, current


async def _read(visit: ConsoleVisit, undo: Undo) -> CurrentRecord:
    options: dict[str, Any] = {"query": undo.query, **(undo.read_variables or undo.variables)}
    try:
        found = await visit.call("GET", undo.read_path, **options)
    except NotFound:
        return CurrentRecord(None)
    if undo.member not in found.members:
        raise Forbidden("can_view_users is required to read the permissions that a user has now")
    return CurrentRecord(found.members[undo.member], found.headers["ETag"])


async def _run(
    visit: ConsoleVisit, undo: Undo, *, dry_run: bool = False, if_match: str | None = None, override: bool = False
) -> AdminResponse:
    options: dict[str, Any] = {"query": {"dry_run": "1"} if dry_run else {}, "body": undo.body, "if_match": if_match}
    if override and undo.has_dry_run:
        place = "query" if undo.method == "DELETE" else "body"
        options[place] = {**options[place], "override": "1" if place == "query" else True}
    return await visit.call(undo.method, undo.path, **{**options, **undo.variables})


def _changed_since(fields: list[str]) -> FormError:
    names = ", ".join(fields)
    return FormError(f"This was changed again since: {names}. Undo the later change first, or edit the record.", 409)
