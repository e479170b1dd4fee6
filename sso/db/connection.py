"""Opens one connection to PostgreSQL with the driver, on the asyncio side."""

import asyncio
from typing import Any, Literal

import asyncpg
import orjson

from sso.core.database_url import DatabaseHost

# PostgreSQL ends a slow statement shortly before our own deadline, so that its outcome is known.
SESSION_SETTINGS = {
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
# A statement, not startup parameters: PgBouncer refuses those.
_SET = ";".join(f"SET {name} = '{value}'" for name, value in SESSION_SETTINGS.items())


async def open_plain(
    dsn: str, host: DatabaseHost | None, seconds: float, role: Literal["read-write", "any"] = "read-write"
) -> Any:
    """Opens a connection with the settings of the server.

    ``host`` is one of several hosts in the URL, and must have the role. With None, the URL alone decides.
    """
    options = {} if host is None else {"host": host.name, "port": host.port, "target_session_attrs": role}
    return await asyncpg.connect(
        dsn,
        timeout=seconds,
        max_cached_statement_lifetime=0,  # unlimited: PostgreSQL itself plans again after an ANALYZE
        **options,
    )


async def open_prepared(dsn: str, host: DatabaseHost | None, seconds: float) -> Any:
    """Opens a connection with the settings and types that the service uses."""
    async with asyncio.timeout(seconds):
        connection = await open_plain(dsn, host, seconds)
        try:
            await connection.execute(_SET)
            await connection.set_type_codec(
                "jsonb", schema="pg_catalog", encoder=lambda value: orjson.dumps(value).decode(), decoder=orjson.loads
            )
        except BaseException:
            connection.terminate()
            raise
        return connection
