"""All checks of an installation, each with advice for the case that it fails."""

from collections.abc import Iterator

from sso.config import Settings
from sso.doctor.addresses import addresses, proxies
from sso.doctor.database import database, wal_archive
from sso.doctor.deliveries import logout_notifications, webhooks
from sso.doctor.finding import Finding
from sso.doctor.keys import keys
from sso.doctor.machine import account, files
from sso.doctor.nodes import bus, nodes, shared_settings


def check(settings: Settings, dsn: str) -> Iterator[Finding]:
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
        yield webhooks(dsn)
        yield from nodes(dsn)
    yield from files(settings)
    yield account()
    yield from addresses(settings)
    yield from proxies(settings, dsn if usable else None)
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
