"""The entries of the audit trail in the database."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

_WRITE = Statement(
    """INSERT INTO audit (
        user_id, service_id, client_id, key_id, operator, address, operation, target, project_id, application_id,
        before, after
    ) VALUES (
        :user_id, :service_id, :client_id, :key_id, :operator, :address, :operation, :target, :project_id,
        :application_id, :before, :after
    ) RETURNING id"""
)
# The conditions of the filters. Each statement has only those that are used, so that PostgreSQL chooses the index for
# them. Ids ascend with time, apart from transactions that take long: the id at a time is looked up with a margin.
_CONDITIONS = {
    "project_id": "project_id = :project_id",
    "application_id": "application_id = :application_id",
    "user_id": "user_id = :user_id",
    "operation": "operation = :operation",
    "target": "target = :target",
    "since": """at >= to_timestamp(:since) AND id >= coalesce(
        (SELECT min(id) FROM (SELECT id FROM audit WHERE at >= to_timestamp(:since) - interval '5 minutes'
            ORDER BY at LIMIT 100) first), 0)""",
    "until": """at < to_timestamp(:until) AND id <= coalesce(
        (SELECT max(id) FROM (SELECT id FROM audit WHERE at >= to_timestamp(:until) + interval '5 minutes'
            ORDER BY at LIMIT 100) last), 9223372036854775807)""",
    "before_id": "id < :before_id",
}
_ENTRY = Statement("SELECT * FROM audit WHERE id = :id")
_INDEXED = ("target", "user_id", "operation")  # those with an index (filter, id), the most selective first
_LAST = Statement("SELECT coalesce(max(id), 0) FROM audit")
_ENTRIES = Statement(
    """SELECT operation, target, before, after FROM audit
    WHERE id > :last AND xmin = pg_current_xact_id()::xid ORDER BY id"""
)


async def insert_entry(tx: Runner, **values: Any) -> int:
    """Returns the id of the entry."""
    entry_id: int = await tx.value(_WRITE, **values)
    return entry_id


async def read_entry(runner: Runner, entry_id: int) -> Row | None:
    return await runner.row(_ENTRY, id=entry_id)


async def read_entries(runner: Runner, *, limit: int, **filters: Any) -> Sequence[Row]:
    """Returns the entries that match, newest first. A filter that is None matches all."""
    values = {name: filters[name] for name in _CONDITIONS if filters[name] is not None}
    statement = _read_statement(tuple(values))
    values |= {name: float(values[name]) for name in ("since", "until") if name in values}
    return await runner.rows(statement, limit=limit, **values)


async def last_entry_id(tx: Transaction) -> int:
    number: int = await tx.value(_LAST)
    return number


async def read_entries_of_transaction(tx: Transaction, last: int) -> Sequence[Row]:
    """Returns the entries that the transaction has written since ``last``."""
    return await tx.rows(_ENTRIES, last=last)


@cache
def _read_statement(filters: tuple[str, ...]) -> Statement:
    where, order = " AND ".join(_CONDITIONS[name] for name in filters) or "true", "id DESC"
    if leading := next((name for name in _INDEXED if name in filters), None):
        # The order of the index, and no equality: the planner could not guess how rare a value is, and would read the
        # primary key backwards until it finds enough entries.
        where = where.replace(_CONDITIONS[leading], f"{leading} >= :{leading} AND {leading} <= :{leading}")
        order = f"{leading} DESC, id DESC"
    return Statement(
        f"SELECT * FROM audit WHERE {where} ORDER BY {order} LIMIT :limit",
        name="audit.store.READ",
    )
