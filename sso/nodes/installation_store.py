"""The state of the installation in the database: its workers, the database itself, the queue of mails, table sizes."""

from typing import Any

import orjson

from sso.db.database import Database
from sso.db.standalone import fetch_value
from sso.db.statement import Statement
from sso.db.transaction import Runner

MAX_COUNTED = 10_000  # a larger table is estimated

_DATABASE = Statement(
    """SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size,
        current_setting('max_connections')::int AS max_connections,
        (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())::int AS connections,
        (SELECT version_num FROM alembic_version) AS schema"""
)
_MAIL = Statement(
    """SELECT count(*) AS waiting, count(*) FILTER (WHERE tries > 0) AS tried,
        coalesce(CAST(extract(epoch FROM now() - min(created)) AS int), 0) AS oldest_s
    FROM (SELECT created, tries FROM outbox WHERE recipient <> '' LIMIT 10000) waiting"""
)
_COUNTED = ("users", "applications", "projects", "oauth_clients")
_TOTAL = f"""SELECT '{{table}}' AS name, CASE WHEN counted.rows <= {MAX_COUNTED} THEN counted.rows ELSE greatest(
        counted.rows, (SELECT reltuples FROM pg_class WHERE oid = CAST('{{table}}' AS regclass))::bigint) END AS rows
    FROM (SELECT count(*) AS rows FROM (SELECT FROM {{table}} LIMIT {MAX_COUNTED + 1}) t) counted"""
_TOTALS = Statement(" UNION ALL ".join(_TOTAL.format(table=table) for table in _COUNTED))
# A lost heartbeat does no harm, so the commit waits neither for the disk nor for a standby.
_BEAT = Statement(
    """INSERT INTO node_workers AS w (worker, node, host, pid, version, schema_version, base_url, master_keys, workers,
        held_polls, sockets, clock_offset, started, last_seen, expires)
    SELECT :worker, :node, :host, :pid, :version, :schema_version, :base_url, :master_keys, :workers, :held_polls,
        :sockets, :clock_offset, now(), now(), now() + make_interval(secs => :forgotten)
    FROM set_config('synchronous_commit', 'off', true)
    ON CONFLICT (worker) DO UPDATE SET master_keys = excluded.master_keys, held_polls = excluded.held_polls,
        sockets = excluded.sockets, clock_offset = excluded.clock_offset, last_seen = excluded.last_seen,
        expires = excluded.expires"""
)
# Rows of workers of this node that died. A worker that only hung writes its row again.
_DELETE_SILENT = Statement(
    "DELETE FROM node_workers WHERE node = :node AND last_seen < now() - make_interval(secs => :silent)"
)
_DELETE_WORKER = Statement("DELETE FROM node_workers WHERE worker = :worker")
_HAS_WORKERS = "SELECT to_regclass('node_workers')"
_WORKERS = """SELECT CAST(coalesce(json_agg(w ORDER BY w.node, w.age), '[]') AS text) FROM (
    SELECT node, host, version, schema_version, base_url, master_keys, workers, held_polls, sockets, clock_offset,
        extract(epoch FROM clock_timestamp() - started) AS uptime,
        extract(epoch FROM clock_timestamp() - last_seen) AS age
    FROM node_workers WHERE expires > now()) w"""
_LIST_WORKERS = Statement(_WORKERS)


async def write_heartbeat(runner: Runner, worker: str, **values: Any) -> None:
    await runner.value(_BEAT, worker=worker, **values)


async def delete_silent_workers(runner: Runner, node: str, silent_s: float) -> None:
    await runner.value(_DELETE_SILENT, node=node, silent=silent_s)


async def delete_worker(runner: Runner, worker: str) -> None:
    await runner.value(_DELETE_WORKER, worker=worker)


async def read_workers(runner: Runner) -> list[dict[str, Any]]:
    """Returns the last heartbeats by node, the latest first."""
    rows: list[dict[str, Any]] = orjson.loads(await runner.value(_LIST_WORKERS))
    return rows


def fetch_workers(dsn: str) -> list[dict[str, Any]]:
    """Like `read_workers`, with a connection of its own. A database of an older version has no workers."""
    text = fetch_value(dsn, _HAS_WORKERS, _WORKERS)
    return orjson.loads(text) if text else []


async def read_database_state(database: Database) -> dict[str, Any]:
    """Returns versions, the size, and how many connections there are and may be."""
    row = await database.row(_DATABASE)
    assert row is not None
    return dict(row)


async def read_mail_queue(database: Database) -> dict[str, Any]:
    row = await database.row(_MAIL)
    assert row is not None
    return dict(row)


async def read_totals(database: Database) -> dict[str, int]:
    """Returns the numbers of users, applications, projects and clients."""
    return {row["name"]: row["rows"] for row in await database.rows(_TOTALS)}
