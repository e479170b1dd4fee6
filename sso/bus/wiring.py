"""Builds the bus from the settings."""

from sso.bus.bus import Bus, worker_name
from sso.bus.postgres_transport import PostgresTransport
from sso.db.database import Database


def build_bus(database: Database) -> Bus:
    worker = worker_name()
    return Bus(PostgresTransport(database, worker), worker)
