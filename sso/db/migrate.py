"""Migrates the schema of the database to the version of this program. A lock makes concurrent starts safe.

A statement that waits for the lock of a table makes all later statements on the table wait as well. So a migration
waits for a short time only, for example while a backup reads the table, and tries again.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sso.db.errors import DatabaseError
from sso.db.standalone import fetch_value, run_with_connection

if TYPE_CHECKING:
    from sqlalchemy import Connection

FIRST = "0049"  # the oldest migration; databases of earlier versions, which were never released, are refused
HEAD = "0078"  # the newest migration; a test compares it with the files
ADVISORY_LOCK = 7_350_911  # an arbitrary number
LOCK_NOT_AVAILABLE = "55P03"
DUPLICATE_TABLE = "42P07"
# For a lock. Longer than deadlock_timeout (1 s), after which PostgreSQL ends an autovacuum that holds the lock. Shorter
# than the 1.5 s for which requests wait for locks: they queue behind this one, and would fail.
LOCK_WAIT_S = 1.2
LOCK_PAUSE_S = 3.0  # before the next attempt
SCRIPTS = Path(__file__).parent / "migrations"


class MigrationError(DatabaseError):
    """The text is one line about what is wrong."""


def migrate(
    dsn: str,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    on_locked: Callable[[], None] = lambda: None,
) -> bool:
    """Returns whether there was something to migrate. ``progress`` gets the version reached and the newest one.

    ``on_locked`` is called when another session holds the lock of a table, before each further attempt.
    """
    if is_current(dsn):
        return False
    progress(int(current(dsn) or 0), int(HEAD))
    run_with_connection(dsn, lambda connection: _upgrade(connection, progress, on_locked))
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


def _upgrade(connection: "Connection", progress: Callable[[int, int], None], on_locked: Callable[[], None]) -> None:
    # Slow to import, and needed only when there is something to migrate.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": ADVISORY_LOCK})
    connection.execute(text(f"SET lock_timeout = {round(LOCK_WAIT_S * 1000)}"))
    connection.commit()
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["on_version"] = lambda version: progress(int(version), int(HEAD))
    while True:
        try:
            command.upgrade(config, "head")  # a process that waited for the advisory lock has nothing left to do
        except DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state == DUPLICATE_TABLE:
                raise MigrationError("the database has tables of another program: use an empty one") from None
            if state != LOCK_NOT_AVAILABLE:
                raise
            connection.rollback()
            on_locked()
            time.sleep(LOCK_PAUSE_S)
        else:
            break
    connection.commit()
