"""The export of everything that is stored about a user, as a JSON document."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.users import exportable_fields, get_user
from sso.core.errors import NotFound
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditActor
from sso.personal_data.tables import EXPORTED, VERSIONS_OF_USERS

EXPORT_SECONDS = 30.0
MAX_AUDIT_ENTRIES = 10_000

_TABLES = {
    table: Statement(
        f"SELECT {', '.join(columns)} FROM {table} WHERE user_id = :user_id ORDER BY {order}"  # noqa: S608 - constants
    )
    for table, columns in EXPORTED.items()
    for order in ["id" if table == "account_events" else columns[0]]
}
_NOW = Statement("SELECT now()")
_KEEP_USER = Statement("SELECT true FROM users WHERE user_id = :user_id FOR KEY SHARE")
_SITES = Statement("SELECT client_id, name FROM oauth_clients WHERE client_id = ANY(CAST(:ids AS text[]))")
# The changes that the user has made, and those of the user's own record. Values are exported only if they are the
# user's: the others belong to a project. So are addresses: those of others are personal data of administrators.
_AUDIT = Statement(
    """SELECT at, operation, target, project_id, application_id, is_own,
        CASE user_id WHEN :user_id THEN address ELSE '' END AS address,
        CASE WHEN is_own THEN before END AS before, CASE WHEN is_own THEN after END AS after
    FROM (SELECT *, (operation LIKE 'user.%' AND target = :user_id)
        OR (operation = 'permissions.save' AND target = application_id || '/' || :user_id) AS is_own FROM audit) entry
    WHERE user_id = :user_id OR is_own ORDER BY id DESC LIMIT :limit"""
)

# What the permission data of the user was before each change, from the triggers that keep it; they also erase it.
_PERMISSION_HISTORY = Statement(
    """SELECT c.at, v.kind, v.key, v.image AS before
    FROM permission_versions v JOIN permission_commits c ON c.id = v.commit_id
    WHERE v.owner = :user_id AND v.kind = ANY(CAST(:kinds AS text[])) ORDER BY v.id DESC LIMIT :limit"""
)


async def export_user(database: Database, user_id: str, actor: AuditActor | None = None) -> dict[str, Any]:
    """Returns the document. The export is added to the history, which it contains.

    That of an operator, the ``actor``, is also added to the audit trail. Raises NotFound if the user has been erased.
    """
    return await database.long_transaction(EXPORT_SECONDS, _export_audited, user_id, actor)


async def _export_audited(tx: Transaction, user_id: str, actor: AuditActor | None) -> dict[str, Any]:
    document = await _export(tx, user_id)
    if actor is not None:
        await audit.write(tx, actor, "user.export", user_id, None, {"exported": True})
    return document


async def _export(tx: Transaction, user_id: str) -> dict[str, Any]:
    if not await tx.value(_KEEP_USER, user_id=user_id):  # an erasure waits until the export is done
        raise NotFound
    await record_event(tx, user_id, EventKind.DATA_EXPORTED)
    user = await get_user(tx, user_id)
    rows = {table: [_json(row) for row in await tx.rows(_TABLES[table], user_id=user_id)] for table in EXPORTED}
    names = {
        row["client_id"]: row["name"]
        for row in await tx.rows(
            _SITES, ids=[row["client_id"] for row in rows["oauth_consents"] + rows["oauth_grants"]]
        )
    }
    entries = await tx.rows(_AUDIT, user_id=user_id, limit=MAX_AUDIT_ENTRIES)
    history = await tx.rows(
        _PERMISSION_HISTORY, user_id=user_id, kinds=list(VERSIONS_OF_USERS), limit=MAX_AUDIT_ENTRIES
    )
    return {
        "exported_at": _text(await tx.value(_NOW)),
        "account": _account(user),
        "sign_in": {
            "password": user.password_hash is not None,
            "second_factors": list(user.second_factors),
            "recovery_codes": rows["recovery_code_sets"],
            "passkeys": rows["passkeys"],
            "linked_identities": rows["linked_identities"],
            "known_devices": rows["known_factors"],
        },
        "browsers": rows["browser_sessions"],
        "games": {"sign_ins": rows["sign_ins"], "session_tokens": rows["session_tokens"]},
        "sites": {
            "consents": [{"name": names.get(row["client_id"], ""), **row} for row in rows["oauth_consents"]],
            "grants": [{"name": names.get(row["client_id"], ""), **row} for row in rows["oauth_grants"]],
        },
        "mailed_links": rows["mailed_links"],
        "permissions": {
            "data": rows["user_records"],
            "roles": rows["role_assignments"],
            "memberships": rows["project_members"],
            "groups": rows["group_users"],
            "history": [_json(row) for row in history],
        },
        "history": rows["account_events"],
        "audit": [_json(row) for row in entries],
    }


def _account(user: User) -> dict[str, Any]:
    return exportable_fields(user) | {
        "reg_time": _text(user.reg_time),
        "disabled": user.disabled,
        "deletion_due": _text(user.deletion_due) if user.deletion_due else None,
    }


def _json(row: Row) -> Mapping[str, Any]:
    return {name: _text(value) if isinstance(value, datetime) else value for name, value in dict(row).items()}


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
