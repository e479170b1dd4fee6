"""Tidies up what has expired. Nothing depends on it: expiry is judged at use."""

import random

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement

EVERY_S = 60.0
AT_ONCE = 1000
TABLES = (
    "browser_sessions",
    "login_challenges",
    "session_tokens",
    "sign_ins",
    "email_codes",
    "known_factors",
    "throttle",
    "game_sessions",
    "game_violations",
    "oauth_requests",
    "oauth_codes",
    "oauth_access_tokens",
    "oauth_grants",
    "untrusted_proxies",
)

# By the indexes that are made for it.
_EXPIRED = "expires AT TIME ZONE 'UTC' < now() AT TIME ZONE 'UTC'"
# In small bites that skip what others hold, so that no request waits for a broom.
_SWEEP = {
    table: Statement(
        f"""WITH old AS (SELECT ctid FROM {table} WHERE {_EXPIRED} LIMIT {AT_ONCE} FOR UPDATE SKIP LOCKED),
        gone AS (DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM old) RETURNING 1)
        SELECT count(*) FROM gone"""  # noqa: S608 - the names are ours
    )
    for table in TABLES
}
# Entries are written in the order of their ids, so the oldest are found without an index on their time.
_OLD_AUDIT = Statement(
    f"""WITH oldest AS MATERIALIZED (SELECT id, at FROM audit ORDER BY id LIMIT {AT_ONCE}),
    old AS (
        SELECT id FROM audit
        WHERE id = ANY (ARRAY(SELECT id FROM oldest WHERE at < now() - make_interval(days => :days)))
        FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM audit WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING 1)
    SELECT count(*) FROM gone"""  # noqa: S608 - the number is ours
)
log = structlog.get_logger()


async def run(
    database: Database, audit_days: int, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    task_status.started()
    while True:
        await trio.sleep(EVERY_S * random.uniform(0.5, 1.5))  # noqa: S311 - workers spread out
        try:
            await sweep(database, audit_days)
        except DatabaseError as error:
            log.warning("cleaner.not_done", reason=str(error))


async def sweep(database: Database, audit_days: int = 0) -> int:
    """Delete what has expired, and audit entries after so many days; 0 keeps them. Returns the number of rows.

    A table that cannot be cleaned does not stop the others.
    """
    total = 0
    sweeps: list[tuple[str, Statement, dict[str, int]]] = [(name, statement, {}) for name, statement in _SWEEP.items()]
    if audit_days:
        sweeps.append(("audit", _OLD_AUDIT, {"days": audit_days}))
    for table, statement, values in sweeps:
        try:
            total += await _in_batches(database, statement, **values)
        except DatabaseError:
            raise
        except Exception as error:
            log.error("cleaner.table_failed", table=table, reason=type(error).__name__)
    return total


async def _in_batches(database: Database, statement: Statement, **values: int) -> int:
    total = 0
    while True:
        count: int = await database.value(statement, **values)
        total += count
        if count < AT_ONCE:
            return total
        await trio.sleep(0.05)
