"""Migrates the schema of the database to the version of this program. A lock makes concurrent starts safe."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sso.db.errors import DatabaseError
from sso.db.standalone import fetch_value, run_with_connection

if TYPE_CHECKING:
    from sqlalchemy import Connection

FIRST = "0049"  # the oldest migration; databases of earlier versions, which were never released, are refused
HEAD = "0075"  # the newest migration; a test compares it with the files
ADVISORY_LOCK = 7_350_911  # an arbitrary number
SCRIPTS = Path(__file__).parent / "migrations"


class MigrationError(DatabaseError):
    """The text is one line about what is wrong."""


def migrate(dsn: str, progress: Callable[[int, int], None] = lambda _done, _total: None) -> bool:
    """Returns whether there was something to migrate. ``progress`` gets the version reached and the newest one."""
    if is_current(dsn):
        return False
    progress(int(current(dsn) or 0), int(HEAD))
    run_with_connection(dsn, lambda connection: _upgrade(connection, progress=progress))
    return True


def is_current(dsn: str) -> bool:
    """Returns whether there is nothing to migrate. Raises MigrationError if this program cannot use the schema."""
    version = current(dsn)
    if version is not None and version > HEAD:
        _check_compatible(dsn, version)
        return True
    if version is not None and version < FIRST:
        raise MigrationError(
            f"the database is at version {version}, which this program cannot upgrade (only from {FIRST})"
        )
    return version == HEAD


def current(dsn: str) -> str | None:
    """Returns the version of the schema, None for an empty database."""
    exists = "SELECT to_regclass('alembic_version')"
    version: str | None = fetch_value(dsn, exists, "SELECT version_num FROM alembic_version")
    return version


def _check_compatible(dsn: str, version: str) -> None:
    """Raises MigrationError unless this program can use the newer schema, as the previous release can."""
    oldest = fetch_value(dsn, "SELECT oldest_program FROM schema_compatibility") or version
    if oldest > HEAD:
        raise MigrationError(f"the database is at version {version}, which needs a newer program (this one has {HEAD})")


def _upgrade(
    connection: "Connection",
    revision: str = "head",
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    # Slow to import, and needed only when there is something to migrate.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import text

    connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": ADVISORY_LOCK})
    connection.commit()
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["on_version"] = lambda version: progress(int(version), int(HEAD))
    command.upgrade(config, revision)  # a process that waited for the lock has nothing left to do
    connection.commit()
