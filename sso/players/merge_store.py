"""Merges of users in the database: what moves from one user to another, and back."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.bans.identity_store import key_identity, provider_identity
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

UNDO_DAYS = 7

# Tables with permissions of users, by the name of what moves, with the columns that identify a row of a user.
PERMISSION_TABLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "assignments": ("role_assignments", ("application_id", "name")),
    "games": ("user_records", ("application_id",)),
    "memberships": ("project_members", ("project_id", "level", "resource", "role")),
    "groups": ("group_users", ("group_id",)),
}
# Tables with ways to sign in, whose rows have ids.
LINK_TABLES = {"keys": "device_keys", "store_accounts": "linked_identities"}


def _same(keys: tuple[str, ...], other: str) -> str:
    return " AND ".join(f"t.{key} = {other}.{key}" for key in keys)


# A row that both users have stays where it is.
_MOVE_ROWS = {
    name: Statement(
        f"""WITH moved AS (
            UPDATE {table} t SET user_id = :into WHERE t.user_id = :user_id
                AND NOT EXISTS (SELECT FROM {table} o WHERE o.user_id = :into AND {_same(keys, "o")})
            RETURNING t.*)
        SELECT coalesce(jsonb_agg(to_jsonb(moved) - 'user_id'), '[]') FROM moved"""
    )
    for name, (table, keys) in PERMISSION_TABLES.items()
}
_KEPT_ROWS = {
    name: Statement(f"SELECT {', '.join(keys)} FROM {table} WHERE user_id = :user_id ORDER BY {', '.join(keys)}")
    for name, (table, keys) in PERMISSION_TABLES.items()
}
# A row that is as it was moved goes back. One that was changed stays, and the user gets the old one as well. One that
# is gone stays gone. Returns the rows that were not as they were.
_RETURN_ROWS = {
    name: Statement(
        f"""WITH stored AS (
            SELECT item, r.* FROM jsonb_array_elements(CAST(:rows AS jsonb)) AS item,
                jsonb_populate_record(CAST(NULL AS {table}), item) AS r
        ), present AS (
            SELECT s.item, to_jsonb(t) - 'user_id' = s.item AS is_same, t.ctid AS row_id
            FROM stored s JOIN {table} t ON t.user_id = :into AND {_same(keys, "s")}
        ), taken AS (
            DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT row_id FROM present WHERE is_same))
        ), restored AS (
            INSERT INTO {table} SELECT r.* FROM present,
                jsonb_populate_record(CAST(NULL AS {table}), item || CAST(:owner AS jsonb)) r
            ON CONFLICT DO NOTHING
        )
        SELECT coalesce(jsonb_agg(item), '[]') FROM stored
        WHERE NOT EXISTS (SELECT FROM present WHERE present.item = stored.item AND is_same)"""
    )
    for name, (table, keys) in PERMISSION_TABLES.items()
}
# For the account they are new: an undone change of its address, or a reset of its password, judges them by their age.
_MOVE_LINKS = {
    name: Statement(f"UPDATE {table} SET user_id = :into, created = now() WHERE user_id = :user_id RETURNING id")
    for name, table in LINK_TABLES.items()
}
_RETURN_LINKS = {
    name: Statement(
        f"""UPDATE {table} SET user_id = :user_id WHERE user_id = :into AND id = ANY (CAST(:ids AS text[]))
        RETURNING id"""
    )
    for name, table in LINK_TABLES.items()
}
_IDENTITIES = {
    "keys": Statement("SELECT digest FROM device_keys WHERE user_id = :user_id AND id = ANY (CAST(:ids AS text[]))"),
    "store_accounts": Statement(
        """SELECT provider_id, subject FROM linked_identities
        WHERE user_id = :user_id AND id = ANY (CAST(:ids AS text[]))"""
    ),
}
_MARK_KEYS = Statement(
    """UPDATE device_keys SET of_guest = (SELECT login = '' FROM users WHERE user_id = :user_id)
    WHERE user_id = :user_id"""
)
_SET_ATTRIBUTES = Statement(
    """UPDATE users SET tags = CAST(:tags AS text[]), purchases = CAST(:purchases AS text[])
    WHERE user_id = :user_id"""
)
_CLOSE = Statement("UPDATE users SET merged_into = :into, disabled = true WHERE user_id = :user_id")
_REOPEN = Statement("UPDATE users SET merged_into = NULL, disabled = :disabled WHERE user_id = :user_id")
_RECORD = Statement(
    """INSERT INTO user_merges (user_id, into_id, was_disabled, moved) VALUES (:user_id, :into, :was_disabled, :moved)
    ON CONFLICT (user_id) DO UPDATE SET into_id = excluded.into_id, at = now(), moved = excluded.moved,
        was_disabled = excluded.was_disabled"""
)
_FIND = Statement(
    f"""SELECT into_id, was_disabled, moved, at > now() - interval '{UNDO_DAYS} days' AS can_be_undone
    FROM user_merges WHERE user_id = :user_id FOR UPDATE"""
)
_FORGET = Statement("DELETE FROM user_merges WHERE user_id = :user_id")
# What a merge may change: the applications and projects where the first user has something.
_APPLICATIONS = Statement(
    """SELECT application_id FROM user_records WHERE user_id = :user_id
    UNION SELECT application_id FROM role_assignments WHERE user_id = :user_id"""
)
_PROJECTS = Statement(
    """SELECT project_id FROM project_members WHERE user_id = :user_id
    UNION SELECT g.project_id FROM group_users u JOIN user_groups g ON g.id = u.group_id WHERE u.user_id = :user_id"""
)
_MERGED_INTO = Statement("SELECT merged_into FROM users WHERE user_id = :user_id")
_RECENT_MERGES = Statement(
    f"""SELECT user_id, at FROM user_merges WHERE into_id = :user_id AND at > now() - interval '{UNDO_DAYS} days'
    ORDER BY at DESC"""
)
# After the time in which a merge can be undone, the merged user loses what names the person, and the ways to sign in.
# The history, the consents and what was not moved stay until the account is erased.
_FINISH = Statement(
    f"""WITH finished AS (
        SELECT user_id FROM user_merges WHERE at <= now() - interval '{UNDO_DAYS} days' AND moved <> '{{}}'
        LIMIT 100 FOR UPDATE SKIP LOCKED
    ), emptied AS (
        UPDATE user_merges SET moved = '{{}}' WHERE user_id = ANY (ARRAY(SELECT user_id FROM finished))
    ), passkeys_gone AS (
        DELETE FROM passkeys WHERE user_id = ANY (ARRAY(SELECT user_id FROM finished))
    )
    UPDATE users SET login = '', login_key = 'MERGED ' || user_id, password_hash = NULL, nick = '', meta = '{{}}',
        phone = '', totp_sealed = NULL, email_2fa = false, passkey_count = 0, email_verified = false, tags = '{{}}',
        purchases = '{{}}'
    WHERE user_id = ANY (ARRAY(SELECT user_id FROM finished)) RETURNING user_id"""
)


async def scope_of(runner: Runner, user_id: str) -> tuple[frozenset[int], frozenset[str]]:
    """Returns the applications and the projects where the user has something."""
    applications = await runner.rows(_APPLICATIONS, user_id=user_id)
    projects = await runner.rows(_PROJECTS, user_id=user_id)
    return frozenset(row[0] for row in applications), frozenset(row[0] for row in projects)


async def move_rows(tx: Transaction, name: str, user_id: str, into: str) -> list[dict[str, Any]]:
    """Returns the rows that were moved, without the user. A row that both users have stays."""
    rows: list[dict[str, Any]] = await tx.value(_MOVE_ROWS[name], user_id=user_id, into=into)
    return rows


async def kept_rows(tx: Transaction, name: str, user_id: str) -> list[dict[str, Any]]:
    """Returns what identifies the rows that the user still has."""
    return [dict(row) for row in await tx.rows(_KEPT_ROWS[name], user_id=user_id)]


async def return_rows(
    tx: Transaction, name: str, user_id: str, into: str, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Moves rows back. Returns those that were changed or deleted meanwhile. Changed ones stay and are restored."""
    changed: list[dict[str, Any]] = await tx.value(_RETURN_ROWS[name], into=into, rows=rows, owner={"user_id": user_id})
    return changed


async def move_links(tx: Transaction, name: str, user_id: str, into: str) -> list[str]:
    return [row["id"] for row in await tx.rows(_MOVE_LINKS[name], user_id=user_id, into=into)]


async def return_links(tx: Transaction, name: str, user_id: str, into: str, ids: list[str]) -> list[str]:
    """Returns the ids of those that no longer belong to ``into``."""
    returned = {row["id"] for row in await tx.rows(_RETURN_LINKS[name], user_id=user_id, into=into, ids=ids)}
    return [link_id for link_id in ids if link_id not in returned]


async def identities_of(tx: Transaction, user_id: str, moved: Mapping[str, Any]) -> list[bytes]:
    """Returns the digests by which bans know the moved keys and store accounts that the user has now."""
    keys = await tx.rows(_IDENTITIES["keys"], user_id=user_id, ids=moved.get("keys", []))
    accounts = await tx.rows(_IDENTITIES["store_accounts"], user_id=user_id, ids=moved.get("store_accounts", []))
    return [
        *(key_identity(row["digest"]) for row in keys),
        *(provider_identity(row["provider_id"], row["subject"]) for row in accounts),
    ]


async def mark_keys(tx: Transaction, user_id: str) -> None:
    """Stores with the keys of the user whether it is a guest."""
    await tx.value(_MARK_KEYS, user_id=user_id)


async def set_attributes(tx: Transaction, user_id: str, tags: list[str], purchases: list[str]) -> None:
    await tx.value(_SET_ATTRIBUTES, user_id=user_id, tags=tags, purchases=purchases)


async def close_merged(tx: Transaction, user_id: str, into: str, moved: dict[str, Any], *, was_disabled: bool) -> None:
    """Disables the user, and stores the merge."""
    await tx.value(_CLOSE, user_id=user_id, into=into)
    await tx.value(_RECORD, user_id=user_id, into=into, moved=moved, was_disabled=was_disabled)


async def find_merge(tx: Transaction, user_id: str) -> Row | None:
    """Returns the merge of the user into another one, locked."""
    return await tx.row(_FIND, user_id=user_id)


async def reopen_merged(tx: Transaction, user_id: str, *, disabled: bool) -> None:
    """Makes the user one of its own again, and deletes the merge."""
    await tx.value(_REOPEN, user_id=user_id, disabled=disabled)
    await tx.value(_FORGET, user_id=user_id)


async def recent_merges(runner: Runner, user_id: str) -> list[tuple[str, datetime]]:
    """Returns the users who were merged into this one and can still be separated, and when, the last one first."""
    return [(row["user_id"], row["at"]) for row in await runner.rows(_RECENT_MERGES, user_id=user_id)]


async def merged_into(runner: Runner, user_id: str) -> str | None:
    """Returns the user whom this one was merged into."""
    into: str | None = await runner.value(_MERGED_INTO, user_id=user_id)
    return into


async def finish_merges(runner: Runner) -> int:
    """Deletes the data of users whose merge can no longer be undone. Returns how many there were."""
    return len(await runner.rows(_FINISH))
