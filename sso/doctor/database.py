"""Checks of PostgreSQL and of what it does for the service."""

import time
from collections.abc import Iterator

import orjson

from sso.config import Settings
from sso.core.database_url import database_hosts
from sso.core.findings import Finding
from sso.db.errors import DatabaseError
from sso.db.migrate import HEAD, current
from sso.db.standalone import fetch_value, host_states
from sso.nodes.node_list import MAX_CLOCK_OFFSET_S


def database(dsn: str) -> Iterator[Finding]:
    started = time.perf_counter()
    try:
        version = fetch_value(dsn, "SHOW server_version")
    except DatabaseError as error:
        yield Finding("database", False, f"does not answer ({error})", "start it, or correct SSO_DATABASE_URL")
        return
    took = (time.perf_counter() - started) * 1000
    yield Finding("database", True, f"PostgreSQL {version}, connected in {took:.0f} ms")
    yield from _database_hosts(dsn)
    read_only = fetch_value(dsn, "SHOW transaction_read_only") == "on"
    yield Finding(
        "writes", not read_only, "refused" if read_only else "accepted", "connect to the primary, not to a standby"
    )
    durable = fetch_value(dsn, "SHOW fsync") == "on" and fetch_value(dsn, "SHOW synchronous_commit") != "off"
    yield Finding(
        "durability",
        durable,
        "every committed change is on disk" if durable else "fsync or synchronous_commit is off",
        "switch both on: a confirmed sign-out must survive a crash",
    )
    revision = current(dsn) or "none"
    is_newer = revision != "none" and revision > HEAD
    advice = "upgrade this program as well" if is_newer else "run `sso migrate`"
    yield Finding("migrations", revision == HEAD, f"at version {revision}, expected {HEAD}", advice)
    drift = time.time() - float(fetch_value(dsn, "SELECT extract(epoch FROM clock_timestamp())"))
    yield Finding(
        "clock",
        abs(drift) < MAX_CLOCK_OFFSET_S,
        f"{abs(drift):.1f} s from the database's",
        "run a time service (chrony, systemd-timesyncd) on both machines",
        warning=True,
    )


def _database_hosts(dsn: str) -> Iterator[Finding]:
    """Checks each of several hosts: a standby that is missing shows only when the primary dies."""
    if len(database_hosts(dsn)) > 1:
        states = host_states(dsn)
        good = sorted(states.values()) == ["primary", *["standby"] * (len(states) - 1)]
        detail = "; ".join(f"{host}: {state}" for host, state in states.items())
        yield Finding("database hosts", good, detail, "one must be the primary, all others standbys", warning=True)


def wal_archive(settings: Settings, dsn: str) -> Finding:
    name = "WAL archive"
    running = fetch_value(dsn, "SHOW archive_mode") == "on"
    if not running and settings.wal_archive is None:
        advice = "set SSO_WAL_ARCHIVE to a folder, to restore to any moment"
        return Finding(name, False, "off: a restore leads back to the time of a backup", advice, warning=True)
    if not running or settings.wal_archive is None:
        detail = "PostgreSQL runs without SSO_WAL_ARCHIVE" if not running else "SSO_WAL_ARCHIVE is not set here"
        return Finding(name, False, detail, "restart the service, and use the same settings for all commands")
    status = orjson.loads(fetch_value(dsn, "SELECT row_to_json(a)::text FROM pg_stat_archiver a"))
    archived = f"{status['last_archived_wal']} at {status['last_archived_time']}"
    last = f"last segment archived: {archived if status['last_archived_wal'] else 'none yet'}"
    failed = status["last_failed_time"]
    if failed and failed > (status["last_archived_time"] or ""):
        detail = f"archiving of {status['last_failed_wal']} fails, last at {failed}; {last}"
        return Finding(name, False, detail, f"is {settings.wal_archive} full, away or not writable? See postgres.log")
    return Finding(name, True, last)
