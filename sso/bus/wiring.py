"""Builds the bus from the settings."""

import ssl
from pathlib import Path

from sso.bus.bus import Bus, worker_name
from sso.bus.postgres_transport import PostgresTransport
from sso.bus.transport import Transport
from sso.config import Settings
from sso.core.bus_url import parse_bus_url
from sso.db.database import Database


def build_bus(database: Database, settings: Settings | None = None) -> Bus:
    """Returns the bus of SSO_BUS_URL, or without it the one of PostgreSQL."""
    worker = worker_name()
    if settings is None or settings.bus_url is None:
        return Bus(PostgresTransport(database, worker), worker)
    return Bus(_nats(database, settings.bus_url.get_secret_value(), settings.bus_ca_file, worker), worker)


def _nats(database: Database, text: str, ca_file: Path | None, worker: str) -> Transport:
    from sso.bus.nats_transport import NatsTransport  # slow to import, and rarely used

    url = parse_bus_url(text)
    tls = ssl.create_default_context(cafile=str(ca_file) if ca_file else None) if url.tls else None
    return NatsTransport(database, url, worker, tls)
