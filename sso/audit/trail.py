"""The audit trail: each change with its actor, time, address, and values before and after.

An entry is written in the transaction of the change.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from sso.audit import store
from sso.audit.values import redact_and_truncate
from sso.core.moments import rfc3339
from sso.db.transaction import Runner

DEFAULT_PAGE = 50

_collected: ContextVar[list[dict[str, Any]] | None] = ContextVar("collected_entries", default=None)


class AuditActor(Struct, frozen=True):
    """The author of a change: a user, a service, or the operator of the command line."""

    user_id: str = ""
    service_id: int | None = None
    address: str = ""
    key_id: str | None = None  # the access key that the request was made with
    operator: str = ""  # the account of the operating system that ran a command
    client_id: str | None = None  # the service client whose access token the request was made with


class AuditFilter(Struct, frozen=True):
    project_id: str | None = None
    application_id: int | None = None
    user_id: str | None = None
    operation: str | None = None
    target: str | None = None
    since: int | None = None
    until: int | None = None
    before_id: int | None = None  # only entries before this one: the next page
    limit: int = DEFAULT_PAGE


async def write(
    tx: Runner,
    actor: AuditActor,
    operation: str,
    target: str,
    before: Any,
    after: Any,
    *,
    project_id: str | None = None,
    application_id: int | None = None,
) -> int | None:
    """Writes an entry and returns its id, unless ``before`` equals ``after``.

    Secrets are redacted, large values are truncated.
    """
    if before == after:
        return None
    before, after = (redact_and_truncate(operation, values) for values in (before, after))
    entry_id = await store.insert_entry(
        tx,
        user_id=actor.user_id,
        service_id=actor.service_id,
        client_id=actor.client_id,
        key_id=actor.key_id,
        operator=actor.operator,
        address=actor.address,
        operation=operation,
        target=target,
        project_id=project_id,
        application_id=application_id,
        before=before,
        after=after,
    )
    if (entries := _collected.get()) is not None:
        entries.append({"id": entry_id, "operation": operation, "target": target, "before": before, "after": after})
    return entry_id


@contextmanager
def collect_entries() -> Iterator[list[dict[str, Any]]]:
    """Collects the entries that are written in this block, so that a page can offer to undo them.

    A transaction that is run again writes its entries again: of entries with the same operation and target, the last
    one counts.
    """
    entries: list[dict[str, Any]] = []
    token = _collected.set(entries)
    try:
        yield entries
    finally:
        _collected.reset(token)


async def read(runner: Runner, audit_filter: AuditFilter) -> list[dict[str, Any]]:
    """Returns the entries that match, newest first."""
    return [_entry(row) for row in await store.read_entries(runner, **asdict(audit_filter))]


async def read_entry(runner: Runner, entry_id: int) -> dict[str, Any] | None:
    """Returns None if the entry does not exist."""
    row = await store.read_entry(runner, entry_id)
    return _entry(row) if row is not None else None


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "at": rfc3339(row["at"])}
