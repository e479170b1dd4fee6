"""Connections to PostgreSQL, on the asyncio side. The Database limits how many are in use."""

from typing import Any

import asyncpg
import orjson

CONNECT_S = 1.5

# PostgreSQL ends a slow statement shortly before our own deadline, so that its outcome is known.
SERVER_SETTINGS = {
    "application_name": "sso",
    "timezone": "UTC",
    "jit": "off",
    "statement_timeout": "1800",
    "lock_timeout": "1500",
    "idle_in_transaction_session_timeout": "10000",
    # Every statement finds its rows by a key. A plan is made once, perhaps while a table is empty, and is still used
    # when the table is large. So plans that read whole tables are disabled.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


async def connect(dsn: str) -> Any:
    connection = await asyncpg.connect(
        dsn,
        timeout=CONNECT_S,
        server_settings=SERVER_SETTINGS,
        max_cached_statement_lifetime=0,  # unlimited: PostgreSQL itself plans again after an ANALYZE
    )
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=lambda value: orjson.dumps(value).decode(), decoder=orjson.loads
    )
    return connection


class ConnectionPool:
    """Keeps idle connections for reuse, the last used first."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._idle: list[Any] = []
        self._is_closed = False

    def take_idle(self) -> Any | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    async def open_connection(self) -> Any:
        return await connect(self._dsn)

    def give_back(self, connection: Any) -> None:
        if connection.is_closed():
            return
        if self._is_closed or connection.is_in_transaction():
            connection.terminate()
        else:
            self._idle.append(connection)

    async def close(self) -> None:
        """Closes the idle connections; those in use are closed when they are given back."""
        self._is_closed = True
        while self._idle:
            connection = self._idle.pop()
            try:
                await connection.close(timeout=1)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection.terminate()
