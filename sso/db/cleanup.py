"""Deletes expired rows. Nothing depends on it, because every reader checks the expiry."""

import random

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.known_users import REMEMBER_APPLICATIONS, REMEMBER_USERS
from sso.db.statement import Statement

INTERVAL_S = 60.0
MAX_ROWS = 1000  # per statement
TABLES = (
    "browser_sessions",
    "ended_sessions",
    "login_challenges",
    "session_tokens",
    "sign_ins",
    "email_codes",
    "mailed_links",
    "impersonations",
    "registration_codes",
    "used_puzzles",
    "used_passkey_challenges",
    "known_factors",
    "device_nonces",
    "throttle",
    "game_sessions",
    "game_violations",
    "oauth_requests",
    "oauth_pushed_requests",
    "oauth_codes",
    "oauth_access_tokens",
    "oauth_grants",
    "oauth_used_jtis",
    "oauth_registration_tokens",
    "oauth_recordings",
    "oauth_recorded_requests",
    "oauth_service_tokens",
    "oauth_site_sessions",
    "logout_notifications",
    "signal_events",
    "untrusted_proxies",
    "upstream_attempts",
    "upstream_nonces",
    "pending_identities",
    "link_conflicts",
    "node_workers",
    "service_figures",
    "login_funnel",
    "webhook_failures",
    "deleted_secrets",
    "data_requests",
)

# The expression of the indexes in ``columns.expiry_index``.
_EXPIRED = "expires AT TIME ZONE 'UTC' < now() AT TIME ZONE 'UTC'"
# Few rows at a time, without waiting for locks, so that no request waits for the cleanup.
_DELETE_EXPIRED = {
    table: Statement(
        f"""WITH expired AS (SELECT ctid FROM {table} WHERE {_EXPIRED} LIMIT {MAX_ROWS} FOR UPDATE SKIP LOCKED),
        deleted AS (DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM expired) RETURNING 1)
        SELECT count(*) FROM deleted"""
    )
    for table in TABLES
}
_DELETE_EXPIRED["oauth_grants"] = Statement(
    f"""WITH expired AS (SELECT ctid FROM oauth_grants WHERE {_EXPIRED} LIMIT {MAX_ROWS} FOR UPDATE SKIP LOCKED),
    deleted AS (
        DELETE FROM oauth_grants WHERE ctid IN (SELECT ctid FROM expired) RETURNING client_id, user_id, act
    ), {REMEMBER_USERS}
    SELECT count(*) FROM deleted"""
)


# Ids ascend with time in these tables, so the oldest rows are found without an index on their time.
def _delete_old(table: str, deleted: str = "1", then: str = "") -> Statement:
    """``then`` is a further part of the statement, which uses the columns ``deleted``."""
    return Statement(
        f"""WITH oldest AS MATERIALIZED (SELECT id, at FROM {table} ORDER BY id LIMIT {MAX_ROWS}),
        old AS (
            SELECT id FROM {table}
            WHERE id = ANY (ARRAY(SELECT id FROM oldest WHERE at < now() - make_interval(days => :days)))
            FOR UPDATE SKIP LOCKED),
        deleted AS (DELETE FROM {table} WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING {deleted}){then}
        SELECT count(*) FROM deleted"""
    )


_DELETE_OLD_AUDIT = _delete_old("audit")
# It stays known which applications a user has used: they are asked for the user's data, and to remove it.
_DELETE_OLD_EVENTS = _delete_old(
    "account_events",
    "user_id, kind, detail",
    """, remembered AS (
        INSERT INTO used_applications (user_id, application_id)
        SELECT DISTINCT user_id, CAST(number AS int) FROM deleted,
            unnest(ARRAY[detail ->> 'app_id', detail ->> 'gapp_id']) number
        WHERE kind = 'signed_in' AND CAST(number AS bigint) BETWEEN 1 AND 2147483647
        ORDER BY 1, 2 ON CONFLICT DO NOTHING)""",
)
# The history of permission data reaches as far back as the audit trail. Its beginning moves first; what ended before it
# is not used any more, and is deleted in any order.
_BEGIN_HISTORY_LATER = Statement(
    """WITH moved AS (
        UPDATE permission_history SET since = now() - make_interval(days => :days)
        WHERE since < now() - make_interval(days => :days))
    SELECT 0"""  # rows that were deleted
)
_DELETE_HISTORY = Statement(
    f"""WITH oldest AS MATERIALIZED (SELECT id, at FROM permission_commits ORDER BY id LIMIT {MAX_ROWS}),
    old AS MATERIALIZED (
        SELECT id FROM permission_commits WHERE id = ANY (ARRAY(
            SELECT id FROM oldest WHERE at < (SELECT since FROM permission_history)))
        FOR UPDATE SKIP LOCKED),
    versions AS MATERIALIZED (
        SELECT ctid FROM permission_versions WHERE commit_id = ANY (ARRAY(SELECT id FROM old)) LIMIT {MAX_ROWS}),
    deleted_versions AS (
        DELETE FROM permission_versions WHERE ctid = ANY (ARRAY(SELECT ctid FROM versions)) RETURNING 1),
    deleted_commits AS (
        DELETE FROM permission_commits WHERE (SELECT count(*) FROM versions) < {MAX_ROWS}
            AND id = ANY (ARRAY(SELECT id FROM old)) RETURNING 1)
    SELECT (SELECT count(*) FROM deleted_versions) + (SELECT count(*) FROM deleted_commits)"""
)
# The stream remembers up to where it was deleted: a program that continues from there has missed events. Positions are
# times in microseconds.
_DELETE_OLD_CHANGES = Statement(
    f"""WITH old AS (
        SELECT id FROM change_events
        WHERE position < CAST(extract(epoch FROM now() - make_interval(days => :days)) * 1000000 AS bigint)
        ORDER BY position LIMIT {MAX_ROWS} FOR UPDATE SKIP LOCKED
    ), deleted AS (
        DELETE FROM change_events WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING position
    ), trimmed AS (
        UPDATE change_stream SET trimmed_to = newest.position
        FROM (SELECT max(position) AS position FROM deleted) AS newest WHERE id = 1 AND newest.position > trimmed_to
    )
    SELECT count(*) FROM deleted"""
)
# Clients that registered themselves. One with grants is in use; it is enough to notice that once a day.
_NOTICE_USED_CLIENTS = Statement(
    """WITH used AS (
        UPDATE oauth_clients c SET registration_used = now()
        WHERE registration_used < now() - interval '1 day'
            AND EXISTS (SELECT FROM oauth_grants g WHERE g.client_id = c.client_id))
    SELECT 0"""  # rows that were deleted
)
MAX_WAITING_DAYS = 7
_DELETE_UNUSED_CLIENTS = Statement(
    f"""WITH unused AS (
        SELECT client_id FROM oauth_clients c
        WHERE registration_used < now() - make_interval(
                days => CASE WHEN approved THEN :days ELSE least(:days, {MAX_WAITING_DAYS}) END)
            AND NOT (approved AND disabled)  -- an administrator has refused or disabled it, which stays known
            AND NOT EXISTS (SELECT FROM oauth_grants g WHERE g.client_id = c.client_id)
        LIMIT {MAX_ROWS} FOR UPDATE SKIP LOCKED),
    deleted_clients AS (
        DELETE FROM oauth_clients WHERE client_id IN (SELECT client_id FROM unused) RETURNING 1),
    deleted AS (  -- the consents, which end with the clients
        SELECT user_id, client_id FROM oauth_consents WHERE client_id IN (SELECT client_id FROM unused)
    ), {REMEMBER_APPLICATIONS}
    SELECT count(*) FROM deleted_clients"""
)
log = structlog.get_logger()


async def run(
    database: Database,
    audit_days: int,
    history_days: int,
    changes_days: int,
    client_days: int,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    task_status.started()
    while True:
        await trio.sleep(INTERVAL_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter between workers
        try:
            await delete_expired(database, audit_days, history_days, changes_days, client_days)
        except DatabaseError as error:
            log.warning("cleanup.failed", reason=str(error))


async def delete_expired(
    database: Database, audit_days: int = 0, history_days: int = 0, changes_days: int = 0, client_days: int = 0
) -> int:
    """Deletes expired rows, old audit entries and past permissions, old events of accounts and changes, and unused
    clients that registered themselves; 0 keeps them.

    Returns the number of rows. An error in one table does not stop the others, unless the database cannot be used.
    """
    total = 0
    statements: list[tuple[str, Statement, dict[str, int]]] = [
        (name, statement, {}) for name, statement in _DELETE_EXPIRED.items()
    ]
    for table, statement, days in (
        ("audit", _DELETE_OLD_AUDIT, audit_days),
        ("account_events", _DELETE_OLD_EVENTS, history_days),
        ("change_events", _DELETE_OLD_CHANGES, changes_days),
    ):
        if days:
            statements.append((table, statement, {"days": days}))
    if audit_days:
        statements.append(("permission_history", _BEGIN_HISTORY_LATER, {"days": audit_days}))
        statements.append(("permission_versions", _DELETE_HISTORY, {}))
    if client_days:
        statements.append(("oauth_clients", _NOTICE_USED_CLIENTS, {}))
        statements.append(("oauth_clients", _DELETE_UNUSED_CLIENTS, {"days": client_days}))
    has_failed = False
    for table, statement, values in statements:
        try:
            total += await _delete_in_batches(database, statement, **values)
        except DatabaseError as error:
            # A slow table or a lock does not stop the others. Two failures in a row mean that the database cannot be
            # used.
            if database.is_circuit_open or has_failed:
                raise
            has_failed = True
            log.warning("cleanup.table_failed", table=table, reason=str(error))
        except Exception as error:
            log.error("cleanup.table_failed", table=table, reason=type(error).__name__)
        else:
            has_failed = False
    return total


async def _delete_in_batches(database: Database, statement: Statement, **values: int) -> int:
    total = 0
    while True:
        count: int = await database.value(statement, **values)
        total += count
        if count < MAX_ROWS:
            return total
        await trio.sleep(0.05)
