"""The lists of an export, which PostgreSQL writes as JSON: the worker only passes the text on.

A list has a bounded number of entries and bytes; the users of an export share the bytes. Each statement finds its rows
by an index.
"""

from collections import Counter
from datetime import datetime
from typing import NamedTuple

import orjson

from sso.accounts.merged_user_store import IDS_WITH_MERGED
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.personal_data.tables import EXPORTED, VERSIONS_OF_USERS

MAX_ENTRIES = 10_000
MAX_BYTES = 8_000_000

# The columns of the lists that are timestamps, and those that are JSON. A test compares them with the tables.
TIME_COLUMNS = frozenset(
    ["at", "created", "expires", "failed_at", "finished", "last_at", "last_seen", "last_used", "used"]
)
JSON_COLUMNS = frozenset(["after", "before", "data", "detail", "login", "private_data", "public_data", "secret_data"])


class ExportedList(NamedTuple):
    entries: orjson.Fragment
    is_complete: bool


def _statement(columns: tuple[str, ...], rows: str, order: str, *, ascending: bool = False, name: str) -> Statement:
    """Returns the statement for the first entries in the ``order``, until one would exceed the limits.

    ``rows`` is a SELECT with the columns and those of the order. With ``ascending``, the last of the entries comes
    first. The size of stored values, which may be compressed, is compared first: reading it is cheap.
    """
    fields = ", ".join(f"{_value(column)} AS {column}" for column in columns)
    stored = " + ".join(f"coalesce(pg_column_size({column}), 0)" for column in columns if column in JSON_COLUMNS) or "0"
    return Statement(
        f"""WITH limits AS (SELECT CAST(:entries AS int) AS entries, CAST(:bytes AS bigint) AS bytes),
        candidate AS (
            SELECT *, row_number() OVER (ORDER BY {order}) AS place, sum({stored}) OVER (ORDER BY {order}) AS stored
            FROM ({rows} ORDER BY {order} LIMIT :entries + 1) found
        ), written AS (
            SELECT place, CASE WHEN stored <= bytes AND place <= entries
                THEN CAST((SELECT row_to_json(entry) FROM (SELECT {fields}) entry) AS text) END AS json, bytes
            FROM candidate, limits
        ), measured AS (
            SELECT place, json, coalesce(sum(coalesce(octet_length(json), bytes + 1)) OVER (ORDER BY place) <= bytes,
                false) AS fits
            FROM written
        )
        SELECT coalesce('[' || string_agg(json, ',' ORDER BY place {"DESC" if ascending else ""})
                FILTER (WHERE fits) || ']', '[]') AS entries, coalesce(bool_and(fits), true) AS is_complete
        FROM measured""",
        name=name,
    )


def _value(column: str) -> str:
    if column in TIME_COLUMNS:
        return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24\\:MI\\:SS"Z"')"""
    return column


def _table_statement(table: str) -> Statement:
    columns = EXPORTED[table]
    name = f"personal_data.{table}"
    if table == "account_events":  # the newest ones, and the last of them at the end
        rows = f"SELECT id, {', '.join(columns)} FROM account_events WHERE user_id = :user_id"
        return _statement(columns, rows, "id DESC", ascending=True, name=name)
    if table in ("oauth_consents", "oauth_grants"):
        listed = ", ".join(f"t.{column}" for column in columns)
        rows = f"""SELECT coalesce(c.name, '') AS name, {listed} FROM {table} t
            LEFT JOIN oauth_clients c USING (client_id) WHERE t.user_id = :user_id"""
        return _statement(("name", *columns), rows, columns[0], name=name)
    rows = f"SELECT {', '.join(columns)} FROM {table} WHERE user_id = :user_id"
    if table == "user_merges":  # also those into the user
        rows += f" UNION SELECT {', '.join(columns)} FROM user_merges WHERE into_id = :user_id"
    return _statement(columns, rows, columns[0], name=name)


# The changes that the user has made, and those of the user's own record. Values are exported only if they are the
# user's: the others belong to a project. So are addresses: those of others are personal data of administrators. The
# reason why support has opened an account is a note of the staff, as that of a ban, which is no part of the entry.
# Each part is in the order of its index, with no equality: see `sso.audit.store`.
_AUDIT = _statement(
    ("at", "operation", "target", "project_id", "application_id", "is_own", "address", "before", "after"),
    """SELECT id, at, operation, target, project_id, application_id, is_own,
        CASE user_id WHEN :user_id THEN address ELSE '' END AS address,
        CASE WHEN is_own THEN before END AS before,
        CASE WHEN is_own THEN CASE operation WHEN 'user.impersonate' THEN after - 'reason' ELSE after END END AS after
    FROM (
        SELECT *, coalesce((operation LIKE 'user.%' AND target = :user_id)
            OR (operation = 'permissions.save' AND target = application_id || '/' || :user_id), false) AS is_own
        FROM (
            (SELECT * FROM audit WHERE user_id >= :user_id AND user_id <= :user_id
                ORDER BY user_id DESC, id DESC LIMIT :entries + 1)
            UNION ALL
            (SELECT * FROM audit WHERE target >= :user_id AND target <= :user_id AND operation LIKE 'user.%'
                AND user_id <> :user_id ORDER BY target DESC, id DESC LIMIT :entries + 1)
            UNION ALL
            (SELECT * FROM audit WHERE operation = 'permissions.save' AND split_part(target, '/', 2) >= :user_id
                AND split_part(target, '/', 2) <= :user_id AND target = application_id || '/' || :user_id
                AND user_id <> :user_id ORDER BY split_part(target, '/', 2) DESC, id DESC LIMIT :entries + 1)
        ) entry
    ) about""",
    "id DESC",
    name="personal_data.export_store.AUDIT",
)
# What the permission data of the user was before each change, from the triggers that keep it; they also erase it.
_PERMISSION_HISTORY = _statement(
    ("at", "kind", "key", "before"),
    f"""SELECT v.id, c.at, v.kind, v.key, v.image AS before
    FROM permission_versions v JOIN permission_commits c ON c.id = v.commit_id
    WHERE v.owner = :user_id AND v.kind IN ({", ".join(f"'{kind}'" for kind in VERSIONS_OF_USERS)})""",
    "id DESC",
    name="personal_data.export_store.PERMISSION_HISTORY",
)
_LISTS = {table: _table_statement(table) for table in EXPORTED} | {
    "audit": _AUDIT,
    "permission_history": _PERMISSION_HISTORY,
}

_NOW = Statement("SELECT now()")
_MERGED_IDS = Statement(f"SELECT user_id FROM ({IDS_WITH_MERGED}) ids WHERE user_id <> :user_id ORDER BY user_id")
_KEEP_USER = Statement("SELECT true FROM users WHERE user_id = :user_id FOR KEY SHARE")


async def keep_user(tx: Transaction, user_id: str) -> bool:
    """Keeps the user from being erased until the transaction ends. Returns False if the user has been erased."""
    return bool(await tx.value(_KEEP_USER, user_id=user_id))


async def read_time(tx: Transaction) -> datetime:
    time: datetime = await tx.value(_NOW)
    return time


async def read_merged_ids(tx: Transaction, user_id: str) -> list[str]:
    """Returns the ids of all users who were merged into this one."""
    return [row["user_id"] for row in await tx.rows(_MERGED_IDS, user_id=user_id)]


async def read_lists(tx: Transaction, user_id: str, sizes: Counter[str]) -> dict[str, ExportedList]:
    """``sizes``: the bytes of the lists of the users before this one, to which this adds those of the user."""
    return {name: await _read_list(tx, name, user_id, sizes) for name in _LISTS}


async def _read_list(tx: Transaction, name: str, user_id: str, sizes: Counter[str]) -> ExportedList:
    row = await tx.row(_LISTS[name], user_id=user_id, entries=MAX_ENTRIES, bytes=MAX_BYTES - sizes[name])
    assert row is not None
    sizes[name] += len(row["entries"].encode()) - len("[]")
    return ExportedList(orjson.Fragment(row["entries"]), row["is_complete"])
