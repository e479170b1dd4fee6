"""Checks of an installation, each with advice for the case that it fails."""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import trio

from sso.bus.check import measure_message
from sso.bus.transport import BusUnavailable
from sso.config import ConfigError, Settings
from sso.core.database_url import database_hosts
from sso.core.encryption import EncryptionError
from sso.core.net import contains
from sso.db.errors import DatabaseError
from sso.db.migrate import HEAD, current
from sso.db.standalone import fetch_value, host_states
from sso.delivery_findings import logout_notifications, webhooks
from sso.finding import Finding
from sso.keys.master_key import open_keyring
from sso.keys.shared_settings import require_shared_settings
from sso.nodes.node_list import MAX_CLOCK_OFFSET_S, read_nodes
from sso.nodes.problems import node_problems
from sso.services import open_services
from sso.web.client_address import peer_address
from sso.web.forwarding_monitor import ADVICE


def check(settings: Settings, dsn: str) -> Iterator[Finding]:
    database = list(_database(dsn))
    yield from database
    yield from (shared := list(_shared_settings(settings)))
    usable = {"database", "migrations"} <= {finding.name for finding in database if finding.good}
    if usable and all(finding.good for finding in shared):
        yield from _keys(settings, dsn)
    if usable:
        yield _bus(settings, dsn)
    if settings.database_url is None and database[0].good:
        yield _wal_archive(settings, dsn)
    if usable:
        yield logout_notifications(dsn)
        yield webhooks(dsn)
        yield from _nodes(dsn)
    yield from _files(settings)
    yield _account()
    yield from _addresses(settings)
    yield from _proxies(settings, dsn if usable else None)
    required = settings.require_2fa != "off"
    yield Finding(
        "second factor of administrators",
        required,
        f"required ({settings.require_2fa})" if required else "an administrator can sign in with the password alone",
        "set SSO_REQUIRE_2FA=admins",
        warning=True,
    )
    denied = settings.gsid_admin == "deny"
    yield Finding(
        "administration by games",
        denied,
        "denied" if denied else "a game can administer the service in the name of an administrator who signs in to it",
        "set SSO_GSID_ADMIN=deny, unless your own tools sign in administrators the way games do",
        warning=True,
    )


def _database(dsn: str) -> Iterator[Finding]:
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


def _shared_settings(settings: Settings) -> Iterator[Finding]:
    if settings.database_url is None:
        return
    try:
        require_shared_settings(settings)
    except ConfigError as error:
        yield Finding("shared settings", False, "the service does not start", str(error))
    else:
        detail = "SSO_SINGLE_NODE is set: only one node may use this database"
        yield Finding("shared settings", True, detail if settings.single_node else "set")


def _database_hosts(dsn: str) -> Iterator[Finding]:
    """Checks each of several hosts: a standby that is missing shows only when the primary dies."""
    if len(database_hosts(dsn)) > 1:
        states = host_states(dsn)
        good = sorted(states.values()) == ["primary", *["standby"] * (len(states) - 1)]
        detail = "; ".join(f"{host}: {state}" for host, state in states.items())
        yield Finding("database hosts", good, detail, "one must be the primary, all others standbys", warning=True)


def _bus(settings: Settings, dsn: str) -> Finding:
    name = "NATS" if settings.bus_url else "PostgreSQL"
    advice = "start it, or correct SSO_BUS_URL; until then, wake-ups of held polls take seconds"
    try:
        milliseconds = trio.run(measure_message, settings, dsn) * 1000
    except BusUnavailable as error:
        return Finding("bus", False, f"{name}: {error}", advice if settings.bus_url else "is it a connection pooler?")
    return Finding("bus", True, f"{name}, a message took {milliseconds:.1f} ms")


def _wal_archive(settings: Settings, dsn: str) -> Finding:
    name = "WAL archive"
    running = fetch_value(dsn, "SHOW archive_mode") == "on"
    if not running and settings.wal_archive is None:
        return Finding(name, True, "off: restores are possible to the time of a backup only (SSO_WAL_ARCHIVE)")
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


def _keys(settings: Settings, dsn: str) -> Iterator[Finding]:
    """Checks the keys without creating any: the first start of the service creates them."""
    in_use = fetch_value(dsn, "SELECT count(*) FROM signing_keys") > 0
    from_backup = "restore the master key that encrypted the secrets in the database (secret.key or SSO_SECRET_KEY)"
    if settings.secret_key is None and not settings.key_file.exists():
        detail = f"{settings.key_file} is missing" if in_use else "is created at the first start"
        yield Finding("master key", not in_use, detail, from_backup)
        return
    try:
        yield Finding("master key", True, f"{open_keyring(settings).keys[0].id} is in use")
    except EncryptionError as error:
        yield Finding("master key", False, str(error), f"correct it, or {from_backup}")
        return
    try:
        signer = f"{trio.run(_signer, settings, dsn)} signs" if in_use else "is created at the first start"
        yield Finding("signing key", True, signer)
    except (EncryptionError, DatabaseError) as error:
        yield Finding("signing key", False, str(error), from_backup)


async def _signer(settings: Settings, dsn: str) -> str:
    async with open_services(settings, dsn) as services:
        try:
            await services.keys.load()
            return services.keys.signer().kid
        except (EncryptionError, DatabaseError) as error:
            failure = error
    raise failure  # outside the nursery, which would wrap it in an ExceptionGroup


def _nodes(dsn: str) -> Iterator[Finding]:
    nodes = read_nodes(dsn)
    names = [node.name for node in nodes if not node.is_silent]
    yield Finding("nodes", True, f"{len(names)} running: {', '.join(names)}" if names else "none is running")
    for problem in node_problems(nodes):
        yield Finding(problem.name, False, problem.detail, problem.advice, warning=problem.warning)


def _files(settings: Settings) -> Iterator[Finding]:
    folder = settings.data_dir
    if folder.exists():
        yield Finding(
            "data directory", folder.is_dir(), str(folder.resolve()), "this path is not a directory: move the file away"
        )
    else:
        yield Finding("data directory", True, f"{folder.resolve()} is created at the first start")
    for path in (settings.key_file, settings.data_dir / "mail", *settings.data_dir.glob("keys/*.pem")):
        if path.exists() and (path != settings.key_file or settings.secret_key is None):
            yield _mode(path)


def _account() -> Finding:
    is_root = os.geteuid() == 0
    return Finding(
        "account",
        not is_root,
        "this command runs as root" if is_root else f"this command runs as uid {os.geteuid()}",
        "set SSO_USER to a dedicated account: root is needed only to listen on ports below 1024",
        warning=True,
    )


def _mode(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    allowed = 0o700 if path.is_dir() else 0o644 if path.suffix == ".pem" else 0o600
    return Finding("file mode", mode & ~allowed == 0, f"{path} is {mode:04o}", f"chmod {allowed:o} {path}")


def _addresses(settings: Settings) -> Iterator[Finding]:
    yield Finding(
        "base URL",
        settings.https or settings.is_loopback,
        settings.base_url,
        "put a reverse proxy with TLS in front and set SSO_BASE_URL to its https address",
        warning=True,
    )
    if settings.smtp_url is None:
        folder = settings.data_dir / "mail"
        yield Finding("mail", False, f"is written to {folder}", "set SSO_SMTP_URL to send it", warning=True)
        if settings.registration == "open":
            yield Finding(
                "registration",
                False,
                "is open, but new users do not get the mail that confirms their address",
                "set SSO_SMTP_URL, or close it with SSO_REGISTRATION=closed",
                warning=True,
            )
    descriptors = os.sysconf("SC_OPEN_MAX")
    yield Finding(
        "open files", descriptors >= 4096, f"{descriptors} for each process", "raise `ulimit -n`", warning=True
    )


def _proxies(settings: Settings, dsn: str | None) -> Iterator[Finding]:
    if untrusted := _untrusted_proxies(settings, dsn) if dsn else []:
        yield Finding(
            "proxies",
            False,
            f"forwarding headers were ignored in the last 24 hours, from {', '.join(untrusted)}",
            ADVICE,
            warning=True,
        )
    elif settings.https and not settings.trusted_proxies:
        yield Finding(
            "proxies",
            False,
            "no proxy is trusted, so all clients appear to have the address of the proxy",
            "set SSO_TRUSTED_PROXIES to the proxy's address",
            warning=True,
        )


def _untrusted_proxies(settings: Settings, dsn: str) -> list[str]:
    """Returns the peers that workers have recorded and that the current settings still do not trust."""
    latest = "SELECT peer, header FROM untrusted_proxies WHERE expires > now() ORDER BY last_seen DESC LIMIT 5"
    rows = orjson.loads(fetch_value(dsn, f"SELECT coalesce(json_agg(r), '[]')::text FROM ({latest}) r"))  # noqa: S608
    return [f"{row['peer']} ({row['header']})" for row in rows if not _is_trusted(settings, row["peer"], row["header"])]


def _is_trusted(settings: Settings, peer: str, header: str) -> bool:
    return header == settings.proxy_header.lower() and contains(settings.trusted_proxies, peer_address(peer))
