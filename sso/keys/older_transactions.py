"""Waiting for older transactions: what they have encrypted with an old master key is not visible until they end."""

from collections.abc import Callable, Sequence

import trio

from sso.core.errors import OperatorError
from sso.db.database import Database
from sso.db.statement import Statement

MAX_OPEN_S = 700.0  # longer than any write of the service or of a command takes
POLL_S = 0.2

Waiting = Callable[[int], None]  # called with the number of open transactions

# Each transaction locks its virtual id, which no other one ever has, also before it writes. A dump writes nothing, but
# may take hours; neither does a process without a user, such as a vacuum.
_OPEN = """SELECT l.virtualtransaction AS id, l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'virtualxid' AND l.virtualxid = l.virtualtransaction AND l.pid <> pg_backend_pid()
        AND a.datname = current_database() AND a.usesysid IS NOT NULL
        AND a.application_name IS DISTINCT FROM 'pg_dump'"""
_NOW_OPEN = Statement(_OPEN)
_STILL_OPEN = Statement(f"{_OPEN} AND l.virtualtransaction = ANY (CAST(:ids AS text[]))")


class OlderTransactionOpen(OperatorError):
    """A transaction that may have encrypted something with an old master key does not end."""


async def open_transactions(database: Database) -> list[str]:
    """Returns the ids of the transactions that are open now."""
    return [row["id"] for row in await database.rows(_NOW_OPEN)]


async def wait_until_ended(database: Database, ids: Sequence[str], waiting: Waiting) -> None:
    """Raises OlderTransactionOpen if one of the transactions stays open for longer than any write takes."""
    deadline = trio.current_time() + MAX_OPEN_S
    while ids and (rows := await database.rows(_STILL_OPEN, ids=ids)):
        if trio.current_time() > deadline:
            raise OlderTransactionOpen(
                f"the PostgreSQL process {rows[0]['pid']} keeps a transaction open, whose changes may need an old "
                f"master key: wait until it ends, or end it with SELECT pg_terminate_backend({rows[0]['pid']}), then "
                "run the command again"
            )
        waiting(len(rows))
        await trio.sleep(POLL_S)
