"""The open transactions of the database."""

from collections.abc import Sequence

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

# Each transaction locks its virtual id, which no other one ever has, also before it writes. A dump writes nothing, but
# may take hours; neither does a process without a user, such as a vacuum.
_OPEN = """SELECT l.virtualtransaction AS id, l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'virtualxid' AND l.virtualxid = l.virtualtransaction AND l.pid <> pg_backend_pid()
        AND a.datname = current_database() AND a.usesysid IS NOT NULL
        AND a.application_name IS DISTINCT FROM 'pg_dump'"""
_NOW_OPEN = Statement(_OPEN)
_STILL_OPEN = Statement(f"{_OPEN} AND l.virtualtransaction = ANY (CAST(:ids AS text[]))")


async def open_transactions(runner: Runner) -> list[str]:
    """Returns the ids of the transactions that may write."""
    return [row["id"] for row in await runner.rows(_NOW_OPEN)]


async def still_open(runner: Runner, ids: Sequence[str]) -> Sequence[Row]:
    """Returns the id and the PostgreSQL process, ``pid``, of those that have not ended."""
    return await runner.rows(_STILL_OPEN, ids=ids)
