"""Migrations create the schema of sso.db.tables, once, also if they run concurrently or are interrupted."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from sso.config import Settings
from sso.db import migrate as migrations
from sso.db.errors import DatabaseError, ReadOnly
from sso.db.migrate import FIRST, HEAD, SCRIPTS, MigrationError, current, migrate
from sso.db.standalone import fetch_value, run_with_connection
from sso.db.tables import metadata
from sso.db.time_limits import TimeLimits
from tests.kit.forked_program import ForkedProcess
from tests.kit.postgres import Postgres
from tests.kit.server import clean_environment, until

TIMEOUT_S = 120  # generous, for slow machines
TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
NO_OTHERS = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@pytest.fixture
def empty(postgres_server: Postgres) -> Iterator[str]:
    dsn = postgres_server.empty()
    yield dsn
    postgres_server.drop(dsn)


@contextmanager
def migrating(folder: Path, dsn: str) -> Iterator[ForkedProcess]:
    """A process that migrates the database; it is killed at the end of the block if it still runs."""
    process = ForkedProcess(["migrate"], env=clean_environment(SSO_DATABASE_URL=dsn), cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        assert process.stdout is not None
        process.stdout.close()


def test_head_is_the_newest_migration_and_each_one_follows_the_previous() -> None:
    files = sorted((SCRIPTS / "versions").glob("*.py"))
    before = None
    for file in files:
        source = file.read_text()
        revision = re.search(r'^revision = "(\w+)"$', source, re.MULTILINE)
        down = re.search(r'^down_revision = (?:"(\w+)"|None)$', source, re.MULTILINE)
        assert revision
        assert down
        assert file.name.startswith(revision[1] + "_")
        assert down[1] == before
        before = revision[1]
    assert before == HEAD


def test_migrated_database_is_not_migrated_again(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "run_with_connection", lambda *_: pytest.fail("migrated again"))
    assert migrate(dsn) is False


def test_migrated_schema_equals_the_metadata(dsn: str) -> None:
    def differences(connection: Connection) -> Any:
        options = {"compare_type": True, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    assert run_with_connection(dsn, differences) == []


def test_constraints_have_the_names_of_the_metadata(dsn: str) -> None:
    """UniqueViolation names the constraint."""

    def names(connection: Connection) -> set[str]:
        rows = connection.execute(text("SELECT conname FROM pg_constraint WHERE contype IN ('p', 'u', 'f', 'c')"))
        return {row[0] for row in rows}

    expected = {str(constraint.name) for table in metadata.tables.values() for constraint in table.constraints}
    assert expected - {"None"} <= run_with_connection(dsn, names)


def test_sequences_start_at_the_documented_numbers(dsn: str) -> None:
    assert fetch_value(dsn, "SELECT nextval('user_ids')") == 1000
    insert = "INSERT INTO applications (name) VALUES ('first') RETURNING application_id"
    assert fetch_value(dsn, insert) == 10


def test_concurrent_migrations_of_an_empty_database_all_succeed(empty: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(migrating(tmp_path, empty)) for _ in range(3)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.read() == f"the database is at version {HEAD}\n"
            assert process.wait(TIMEOUT_S) == 0
    assert current(empty) == HEAD
    assert fetch_value(empty, "SELECT count(*) FROM alembic_version") == 1


@pytest.mark.parametrize("version", [f"{int(HEAD) + 1:04}", "9999"])
def test_database_that_needs_a_newer_program_is_rejected(dsn: str, version: str) -> None:
    fetch_value(dsn, f"UPDATE alembic_version SET version_num = '{version}'")
    fetch_value(dsn, f"UPDATE schema_compatibility SET oldest_program = '{version}'")
    with pytest.raises(MigrationError) as caught:
        migrate(dsn)
    expected = f"the database is at version {version}, which needs a newer program (this one has {HEAD})"
    assert str(caught.value) == expected
    assert current(dsn) == version


def test_previous_release_starts_on_a_newer_schema_that_only_adds(dsn: str) -> None:
    newer = f"{int(HEAD) + 1:04}"
    fetch_value(dsn, f"UPDATE alembic_version SET version_num = '{newer}'")
    fetch_value(dsn, f"UPDATE schema_compatibility SET oldest_program = '{HEAD}'")
    assert migrate(dsn) is False
    assert current(dsn) == newer


def test_migrations_record_the_oldest_program(dsn: str) -> None:
    newest = next((SCRIPTS / "versions").glob(f"{HEAD}_*.py")).read_text()
    declared = re.search(r'^oldest_program = "(\w+)"$', newest, re.MULTILINE)
    assert fetch_value(dsn, "SELECT oldest_program FROM schema_compatibility") == (declared[1] if declared else HEAD)


def test_migration_that_keeps_older_programs_working_only_adds() -> None:
    """Programs that do not know a new column leave it out when they insert."""
    for file in (SCRIPTS / "versions").glob("*.py"):
        source = file.read_text()
        if re.search(r'^oldest_program = "', source, re.MULTILINE):
            assert not re.search(r"\bdrop_|\bDROP (?!INDEX)|\bRENAME\b|rename_table|new_column_name", source), file.name
            for column in re.findall(r"add_column\((.*)\)", source):
                assert "nullable=False" not in column or "server_default" in column, file.name


@contextmanager
def locked_table(dsn: str) -> Iterator[threading.Event]:
    """Another session uses the table of users until the event is set, or until the end of the block."""
    blocking, done = threading.Event(), threading.Event()

    def block(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE users (a int)"))  # not committed: another CREATE TABLE users waits for it
        blocking.set()
        done.wait(2 * TIMEOUT_S)
        connection.rollback()

    blocker = threading.Thread(target=run_with_connection, args=(dsn, block))
    blocker.start()
    try:
        assert blocking.wait(TIMEOUT_S)
        yield done
    finally:
        done.set()
        blocker.join()


def test_migration_gives_a_lock_up_before_the_requests_that_queue_behind_it_do() -> None:
    limits = TimeLimits.scaled(Settings().database_timeout_s)
    (lock_timeout_ms,) = re.findall(r"SET lock_timeout = (\d+)", " ".join(limits.session_sql))
    assert 1.0 < migrations.LOCK_WAIT_S < int(lock_timeout_ms) / 1000


def test_empty_database_is_migrated_once_after_a_kill_and_while_another_session_uses_a_table(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration that waits for the lock of a table would make all requests that use the table wait: it tries again.

    Both in one test, because a migration of an empty database takes long.
    """
    with locked_table(empty), migrating(tmp_path, empty):
        assert until(lambda: fetch_value(empty, WAITING), TIMEOUT_S), "the migration did not wait for the table"
    assert until(lambda: fetch_value(empty, NO_OTHERS), TIMEOUT_S)
    assert fetch_value(empty, TABLES) in (0, 1)  # alembic_version may exist, but it is empty
    assert current(empty) is None

    monkeypatch.setattr(migrations, "LOCK_WAIT_S", 0.1)
    monkeypatch.setattr(migrations, "LOCK_PAUSE_S", 0.1)
    waits = []
    with locked_table(empty) as release:

        def on_locked() -> None:
            waits.append(True)
            if len(waits) == 2:
                release.set()

        assert migrate(empty, on_locked=on_locked) is True
    assert len(waits) >= 2
    assert current(empty) == HEAD
    assert fetch_value(empty, TABLES) == len(metadata.tables) + 1
    assert migrate(empty) is False


def test_database_from_before_the_first_migration_is_refused(dsn: str) -> None:
    fetch_value(dsn, "UPDATE alembic_version SET version_num = '0042'")
    with pytest.raises(MigrationError, match=rf"^the database is at version 0042, .* \(only from {FIRST}\)$"):
        migrate(dsn)
    assert current(dsn) == "0042"


def test_account_that_may_not_create_tables_is_reported_in_one_line(empty: str) -> None:
    """Since PostgreSQL 15, only the owner of a database may create tables in it."""
    role = f"guest_{os.getpid()}"
    fetch_value(empty, f"CREATE ROLE {role}")
    try:
        with pytest.raises(DatabaseError, match=r"^permission denied for schema public: the account must own the data"):
            migrate(f"{empty}&role={role}")
    finally:
        fetch_value(empty, f"DROP ROLE {role}")


def test_database_that_cannot_be_migrated_is_reported_in_one_line(empty: str) -> None:
    with pytest.raises(ReadOnly, match=r"^the database is read-only$"):
        migrate(f"{empty}&default_transaction_read_only=on")
    fetch_value(empty, "CREATE TABLE users (id int)")
    with pytest.raises(MigrationError, match=r"^the database has tables of another program: use an empty one$"):
        migrate(empty)
    assert fetch_value(empty, TABLES) in (1, 2)  # alembic_version may exist, but it is empty


def test_error_of_an_unreachable_database_does_not_quote_its_password() -> None:
    with pytest.raises(Exception, match=r"^127\.0\.0\.1:1: refuses connections$"):
        migrate("postgresql://sso:hunter2@127.0.0.1:1/none")
    with pytest.raises(Exception, match=r"^the database URL is not valid, or its sslmode needs sslrootcert$"):
        migrate("postgresql://sso:hunter2@127.0.0.1:hunter2/none")
