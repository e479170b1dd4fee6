"""Opens one connection to PostgreSQL with the driver, on the asyncio side."""

import asyncio
from collections import OrderedDict, deque
from typing import Any, Literal

import asyncpg
import orjson
from asyncpg.protocol import protocol

from sso.core.database_url import DatabaseHost
from sso.db.time_limits import TimeLimits

SESSION_SETTINGS = {
    "application_name": "sso",
    "timezone": "UTC",
    "jit": "off",
    # Every statement finds its rows by a key. A plan is made once, perhaps while a table is empty, and is still used
    # when the table is large. So plans that read whole tables are disabled.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
# Statements, not startup parameters: PgBouncer refuses those.
_SET = [f"SET {name} = '{value}'" for name, value in SESSION_SETTINGS.items()]

# asyncpg asks abstract base classes of each value of an array whether it is a container, because an array may have
# arrays as values: 375 times in a login. The concrete types, without text and mappings, answer in a tenth of the time.
# tests/test_private_dependencies.py checks the names.
_VIEWS: list[object] = [{}.keys(), {}.values(), OrderedDict[str, str]().keys(), OrderedDict[str, str]().values()]
protocol.IterableABC = protocol.SizedABC = (list, tuple, set, frozenset, deque, range, *map(type, _VIEWS))
protocol.MappingABC = dict

# asyncpg asks PostgreSQL about each array type, on each connection, with a recursive statement that takes longer than
# most statements of the service. The numbers (pg_type.oid) of built-in types and of their elements never change.
ARRAY_TYPES = {
    "bool": (1000, 16),
    "bytea": (1001, 17),
    "int4": (1007, 23),
    "int8": (1016, 20),
    "float8": (1022, 701),
    "timestamptz": (1185, 1184),
    "jsonb": (3807, 3802),
}
_INTROSPECTED = [
    {"oid": oid, "ns": "pg_catalog", "name": f"_{name}", "elemtype": element, "elemtype_name": name, "elemdelim": b",",
     "kind": b"b", "basetype": None, "range_subtype": None, "attrtypoids": None, "attrnames": None}
    for name, (oid, element) in ARRAY_TYPES.items()
]  # fmt: skip


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


async def open_prepared(dsn: str, host: DatabaseHost | None, limits: TimeLimits) -> Any:
    """Opens a connection with the settings and types that the service uses."""
    async with asyncio.timeout(limits.connect_s):
        connection = await open_plain(dsn, host, limits.connect_s)
        try:
            await connection.execute(";".join([*_SET, *limits.session_sql]))
            await connection.set_type_codec(
                "jsonb", schema="pg_catalog", encoder=lambda value: orjson.dumps(value).decode(), decoder=orjson.loads
            )
            connection._protocol.get_settings().register_data_types(_INTROSPECTED)  # after the codec of jsonb
        except BaseException:
            connection.terminate()
            raise
        return connection
