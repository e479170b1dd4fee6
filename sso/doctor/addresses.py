"""Checks of the addresses of the service, of mail and of the proxies in front."""

import os
from collections.abc import Iterator

import orjson

from sso.config import Settings
from sso.core.findings import Finding
from sso.core.net import contains
from sso.db.standalone import fetch_value
from sso.web.client_address import peer_address
from sso.web.forwarding_monitor import advice_on


def addresses(settings: Settings) -> Iterator[Finding]:
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


def proxies(settings: Settings, dsn: str | None) -> Iterator[Finding]:
    ignored = _ignored_headers(settings, dsn) if dsn else {}
    for advice, senders in ignored.items():
        detail = f"forwarding headers were ignored in the last 24 hours, from {', '.join(senders)}"
        yield Finding("proxies", False, detail, advice, warning=True)
    if not ignored and settings.https and not settings.trusted_proxies:
        yield Finding(
            "proxies",
            False,
            "no proxy is trusted, so all clients appear to have the address of the proxy",
            "set SSO_TRUSTED_PROXIES to the proxy's address",
            warning=True,
        )


def _ignored_headers(settings: Settings, dsn: str) -> dict[str, list[str]]:
    """Returns what workers have recorded and would ignore with the current settings, too: the senders by the advice."""
    latest = "SELECT peer, header FROM untrusted_proxies WHERE expires > now() ORDER BY last_seen DESC LIMIT 5"
    rows = orjson.loads(fetch_value(dsn, f"SELECT coalesce(json_agg(r), '[]')::text FROM ({latest}) r"))
    ignored: dict[str, list[str]] = {}
    for row in rows:
        is_trusted = contains(settings.trusted_proxies, peer_address(row["peer"]))
        if not is_trusted or row["header"] != settings.proxy_header.lower():
            advice = advice_on(is_trusted=is_trusted, header=settings.proxy_header)
            ignored.setdefault(advice, []).append(f"{row['peer']} ({row['header']})")
    return ignored
