"""Bring the database's schema up to this program's version, under a lock, so that many may start at once."""

from pathlib import Path

from sqlalchemy import Connection

from sso.db.errors import DatabaseError
from sso.db.standalone import fetch_value, run_with_connection

HEAD = "0016"  # the newest migration; a test holds it against the folder
LOCK = 7_350_911  # any number, the same for all who migrate
SCRIPTS = Path(__file__).parent / "migrations"


class MigrationError(DatabaseError):
    """One line that says what is wrong."""


def migrate(dsn: str) -> bool:
    """True if there was something to do."""
    found = current(dsn)
    if found is not None and found > HEAD:
        raise MigrationError(f"the database is at version {found}, newer than this program ({HEAD})")
    if found == HEAD:
        return False
    run_with_connection(dsn, _upgrade)
    return True


def current(dsn: str) -> str | None:
    if fetch_value(dsn, "SELECT to_regclass('alembic_version')") is None:
        return None
    found: str | None = fetch_value(dsn, "SELECT version_num FROM alembic_version")
    return found


def _upgrade(connection: Connection, revision: str = "head") -> None:
    # Slow to import, and needed only when there is something to migrate.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import text

    connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": LOCK})
    connection.commit()
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)  # whoever waited for the lock finds nothing left to do
    connection.commit()
