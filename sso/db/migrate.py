"""Bring the database's schema up to this program's version, under a lock, so that many may start at once."""

from pathlib import Path

import sqlalchemy

from sso.db.bridge import run_with_connection
from sso.db.errors import DatabaseError

HEAD = "0001"  # the newest migration; a test holds it against the folder
LOCK = 7_350_911  # any number, the same for all who migrate
SCRIPTS = Path(__file__).parent / "migrations"


class MigrationError(DatabaseError):
    """One line that says what is wrong."""


def migrate(dsn: str) -> bool:
    """True if there was something to do."""
    return run_with_connection(dsn, _migrate)


def current(dsn: str) -> str | None:
    return run_with_connection(dsn, _revision)


def _migrate(connection: sqlalchemy.Connection) -> bool:
    connection.execute(sqlalchemy.text("SELECT pg_advisory_lock(:lock)"), {"lock": LOCK})
    revision = _revision(connection)
    connection.commit()
    if revision == HEAD:
        return False
    if revision is not None and revision > HEAD:
        raise MigrationError(f"the database is at version {revision}, newer than this program ({HEAD})")
    # Imported here because a start that finds nothing to do should not pay for it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.commit()
    return True


def _revision(connection: sqlalchemy.Connection) -> str | None:
    if connection.scalar(sqlalchemy.text("SELECT to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = connection.scalar(sqlalchemy.text("SELECT version_num FROM alembic_version"))
    return revision
