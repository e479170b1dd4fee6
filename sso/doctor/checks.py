"""All checks of an installation, each with advice for the case that it fails."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import trio

from sso.bus.check import measure_message
from sso.bus.transport import BusUnavailable
from sso.config import ConfigError, Settings
from sso.core.encryption import EncryptionError
from sso.core.findings import Finding
from sso.db.errors import DatabaseError
from sso.db.standalone import fetch_value
from sso.doctor.addresses import addresses, proxies
from sso.doctor.database import database, wal_archive
from sso.doctor.test_players import test_players
from sso.keys.master_key import open_keyring
from sso.keys.shared_settings import require_shared_settings
from sso.nodes.node_list import read_nodes
from sso.nodes.problems import node_problems
from sso.services import open_services


def shared_settings(settings: Settings) -> Iterator[Finding]:
    if settings.database_url is None:
        return
    try:
        require_shared_settings(settings)
    except ConfigError as error:
        yield Finding("shared settings", False, "the service does not start", str(error))
    else:
        detail = "SSO_SINGLE_NODE is set: only one node may use this database"
        yield Finding("shared settings", True, detail if settings.single_node else "set")


def bus(settings: Settings, dsn: str) -> Finding:
    name = "NATS" if settings.bus_url else "PostgreSQL"
    advice = "start it, or correct SSO_BUS_URL; until then, wake-ups of held polls take seconds"
    try:
        milliseconds = trio.run(measure_message, settings, dsn) * 1000
    except BusUnavailable as error:
        return Finding("bus", False, f"{name}: {error}", advice if settings.bus_url else "is it a connection pooler?")
    return Finding("bus", True, f"{name}, a message took {milliseconds:.1f} ms")


def nodes(dsn: str) -> Iterator[Finding]:
    known = read_nodes(dsn)
    names = [node.name for node in known if not node.is_silent]
    yield Finding("nodes", True, f"{len(names)} running: {', '.join(names)}" if names else "none is running")
    for problem in node_problems(known):
        yield Finding(problem.name, False, problem.detail, problem.advice, warning=problem.warning)


def connections(settings: Settings, dsn: str) -> Finding:
    """Whether the database accepts the connections of all workers: a pool for each, and one for notifications."""
    running = sum(node.expected_workers for node in read_nodes(dsn) if not node.is_silent)
    needed = (running or settings.workers) * (settings.database_pool + 1)
    accepted = int(fetch_value(dsn, "SHOW max_connections")) - int(
        fetch_value(dsn, "SHOW superuser_reserved_connections")
    )
    advice = "lower SSO_WORKERS or SSO_DATABASE_POOL"
    if settings.database_url is not None:
        advice = f"raise max_connections of PostgreSQL, or {advice}"
    detail = f"the workers open {needed}, and the database accepts {accepted}"
    return Finding("connections", needed <= accepted, detail, advice, warning=True)


def files(settings: Settings) -> Iterator[Finding]:
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


def _mode(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    allowed = 0o700 if path.is_dir() else 0o644 if path.suffix == ".pem" else 0o600
    return Finding("file mode", mode & ~allowed == 0, f"{path} is {mode:04o}", f"chmod {allowed:o} {path}")


def account(program: str) -> Finding:
    is_root = os.geteuid() == 0
    return Finding(
        "account",
        not is_root,
        f"{program} runs as root" if is_root else f"{program} runs as uid {os.geteuid()}",
        "set SSO_USER to a dedicated account: root is needed only to listen on ports below 1024",
        warning=True,
    )


def keys(settings: Settings, dsn: str) -> Iterator[Finding]:
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


def logout_notifications(dsn: str) -> Finding:
    failed = fetch_value(
        dsn,
        """SELECT string_agg(format('%s to %s (%s)', count, client_id, problem), '; ' ORDER BY client_id)
        FROM (SELECT client_id, count(*) AS count, max(problem) AS problem FROM logout_notifications
            WHERE next_try IS NULL AND expires > now() GROUP BY client_id) failed""",
    )
    return Finding(
        "logout notifications",
        failed is None,
        "none has failed in the last days" if failed is None else f"failed in the last days: {failed}",
        "correct backchannel_logout_uri of the client, or SSO_BACKCHANNEL_NETWORKS, or ask the operator of the site",
        warning=True,
    )


def webhooks(dsn: str) -> Finding:
    """A webhook that has been failing for some minutes, or that has failed events."""
    failing = fetch_value(
        dsn,
        """SELECT string_agg(format('%s (%s)', url, coalesce(problem, failed || ' events have failed')), '; '
            ORDER BY url)
        FROM (SELECT url, CASE WHEN failing_since < now() - interval '5 minutes' THEN problem END AS problem,
                (SELECT count(*) FROM webhook_failures f
                    WHERE f.webhook_id = w.webhook_id AND expires > now()) AS failed
            FROM webhooks w WHERE NOT disabled) deliveries
        WHERE problem IS NOT NULL OR failed > 0""",
    )
    return Finding(
        "webhooks",
        failing is None,
        "events are delivered" if failing is None else f"events are not delivered: {failing}",
        "correct the address with the console or the management API, then `sso webhook resend ID`",
        warning=True,
    )


def signal_streams(dsn: str) -> Finding:
    """A stream whose receiver has not received for some minutes, or which was paused because too much waits."""
    failing = fetch_value(
        dsn,
        """SELECT string_agg(format('%s of %s (%s)', stream_id, client_id,
                CASE WHEN overfull THEN reason ELSE problem END), '; ' ORDER BY client_id, stream_id)
        FROM signal_streams WHERE overfull OR failing_since < now() - interval '5 minutes'""",
    )
    return Finding(
        "signal streams",
        failing is None,
        "signals are delivered" if failing is None else f"signals are not delivered: {failing}",
        "ask the operator of the client; its page in the console enables or removes a stream",
        warning=True,
    )


def data_removals(dsn: str) -> Finding:
    """Games that have not removed the data of erased users for a day, or at all."""
    failing = fetch_value(
        dsn,
        """SELECT string_agg(format('%s of application %s (%s)', count, application_id, problem), '; '
            ORDER BY application_id)
        FROM (SELECT application_id, count(*) AS count, max(problem) AS problem FROM data_requests
            WHERE kind = 'remove' AND (state = 'failed' OR (state = 'pending' AND problem <> ''
                AND created < now() - interval '1 day')) AND (expires IS NULL OR expires > now())
            GROUP BY application_id) failing""",
    )
    return Finding(
        "data removals",
        failing is None,
        "games have removed the data of erased users" if failing is None else f"not accepted by games: {failing}",
        "correct settings.gdpr of the application or ask its operator, then send them again in the console "
        "(Data requests) or with POST /api/admin/data-requests/{id}/retry",
        warning=True,
    )


def check(settings: Settings, dsn: str, program: str = "this command") -> Iterator[Finding]:
    answers = list(database(dsn))
    yield from answers
    yield from (shared := list(shared_settings(settings)))
    usable = {"database", "migrations"} <= {finding.name for finding in answers if finding.good}
    if usable and all(finding.good for finding in shared):
        yield from keys(settings, dsn)
    if usable:
        yield bus(settings, dsn)
    if settings.database_url is None and answers[0].good:
        yield wal_archive(settings, dsn)
    if usable:
        yield logout_notifications(dsn)
        yield signal_streams(dsn)
        yield webhooks(dsn)
        yield data_removals(dsn)
        yield from nodes(dsn)
        yield connections(settings, dsn)
    yield from files(settings)
    yield account(program)
    yield from addresses(settings)
    yield from proxies(settings, dsn if usable else None)
    yield from test_players(settings, dsn if usable else None)
    yield from _administration(settings)


def _administration(settings: Settings) -> Iterator[Finding]:
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
