"""Tidies up what has expired. Nothing depends on it: expiry is judged at use."""

import random

import structlog
import trio

from sso.db.bridge import Database
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
    "throttle",
    "game_sessions",
    "game_violations",
    "oauth_requests",
    "oauth_codes",
    "oauth_access_tokens",
    "oauth_grants",
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
log = structlog.get_logger()


async def run(database: Database, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    task_status.started()
    while True:
        await trio.sleep(EVERY_S * random.uniform(0.5, 1.5))  # noqa: S311 - workers spread out
        try:
            await sweep(database)
        except DatabaseError as error:
            log.warning("cleaner.not_done", reason=str(error))


async def sweep(database: Database) -> int:
    """Delete what has expired; returns the number of rows. A table that cannot be cleaned does not stop the others."""
    total = 0
    for table, statement in _SWEEP.items():
        try:
            total += await _sweep_table(database, statement)
        except DatabaseError:
            raise
        except Exception as error:
            log.error("cleaner.table_failed", table=table, reason=type(error).__name__)
    return total


async def _sweep_table(database: Database, statement: Statement) -> int:
    total = 0
    while True:
        count: int = await database.value(statement)
        total += count
        if count < AT_ONCE:
            return total
        await trio.sleep(0.05)
