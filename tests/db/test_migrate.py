"""Migrations: one way to the schema of tables.py, taken once, whoever comes first and however it is interrupted."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from sso.db import migrate as migrations
from sso.db.migrate import HEAD, SCRIPTS, MigrationError, current, migrate
from sso.db.standalone import fetch_value, run_with_connection
from sso.db.tables import metadata
from tests.kit.postgres import Postgres
from tests.kit.server import until

TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"


@pytest.fixture
def empty(postgres_server: Postgres) -> Iterator[str]:
    dsn = postgres_server.empty()
    yield dsn
    postgres_server.drop(dsn)


def start_migrating(dsn: str) -> "subprocess.Popen[str]":
    program = "import sys; from sso.db.migrate import migrate; print(migrate(sys.argv[1]))"
    return subprocess.Popen(
        [sys.executable, "-c", program, dsn], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_head_is_the_newest_file_and_every_file_follows_the_one_before() -> None:
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


def test_logins_are_brought_to_nfc_unless_the_new_key_is_taken(empty: str) -> None:
    run_with_connection(empty, lambda connection: migrations._upgrade(connection, "0015"))  # the one before
    nfd, nfc = "zoe\u0308@example.com", "zo\u00eb@example.com"
    stored = {
        "1": (nfd, nfd),
        "2": ("Ann@Straße.de", "ann@strasse.de"),
        "3": ("bjo\u0308rn@example.com", "bjo\u0308rn@example.com"),
        "4": ("bj\u00f6rn@example.com", "bj\u00f6rn@example.com"),
        "5": ("ASCII@example.com", "ascii@example.com"),
    }

    def insert(connection: Connection) -> None:
        for user_id, (login, key) in stored.items():
            values = {"user_id": user_id, "login": login, "key": key}
            connection.execute(
                text("INSERT INTO users (user_id, login, login_key) VALUES (:user_id, :login, :key)"), values
            )
        connection.commit()

    def read(connection: Connection) -> Any:
        rows = connection.execute(text("SELECT user_id, login, login_key FROM users"))
        return {row.user_id: (row.login, row.login_key) for row in rows}

    run_with_connection(empty, insert)
    assert migrate(empty) is True
    assert run_with_connection(empty, read) == stored | {
        "1": (nfc, nfc),
        "2": ("Ann@Straße.de", "ann@xn--strae-oqa.de"),
    }


def test_an_empty_database_is_migrated_once(empty: str) -> None:
    assert current(empty) is None
    assert migrate(empty) is True
    assert current(empty) == HEAD
    assert fetch_value(empty, TABLES) == len(metadata.tables) + 1
    assert migrate(empty) is False


def test_the_second_run_does_not_even_look_at_the_migrations(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "run_with_connection", lambda *_: pytest.fail("migrated again"))
    assert migrate(dsn) is False


def test_the_migrated_schema_is_the_one_of_the_tables(dsn: str) -> None:
    def differences(connection: Connection) -> Any:
        options = {"compare_type": True, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    assert run_with_connection(dsn, differences) == []


def test_constraints_are_named_as_the_tables_name_them(dsn: str) -> None:
    """An error of the database is told by the name of the constraint."""

    def names(connection: Connection) -> set[str]:
        found = connection.execute(text("SELECT conname FROM pg_constraint WHERE contype IN ('p', 'u', 'f', 'c')"))
        return {row[0] for row in found}

    wanted = {str(constraint.name) for table in metadata.tables.values() for constraint in table.constraints}
    assert wanted - {"None"} <= run_with_connection(dsn, names)


def test_numbers_begin_where_the_tables_say(dsn: str) -> None:
    assert fetch_value(dsn, "SELECT nextval('user_ids')") == 1000
    added = "INSERT INTO applications (name) VALUES ('first') RETURNING application_id"
    assert fetch_value(dsn, added) == 10


def test_processes_at_once_on_an_empty_database_are_all_fine(empty: str) -> None:
    children = [start_migrating(empty) for _ in range(3)]
    for child in children:
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        assert out.strip() in ("True", "False")
    assert current(empty) == HEAD
    assert fetch_value(empty, "SELECT count(*) FROM alembic_version") == 1


@pytest.mark.parametrize("version", [f"{int(HEAD) + 1:04}", "9999"])
def test_a_database_of_a_newer_program_is_refused_in_one_line(dsn: str, version: str) -> None:
    fetch_value(dsn, f"UPDATE alembic_version SET version_num = '{version}'")
    with pytest.raises(MigrationError) as caught:
        migrate(dsn)
    assert str(caught.value) == f"the database is at version {version}, newer than this program ({HEAD})"
    assert current(dsn) == version


def test_a_migration_killed_half_way_leaves_nothing_and_is_taken_again(empty: str) -> None:
    blocking, done = threading.Event(), threading.Event()

    def block(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE users (a int)"))  # not committed: whoever makes it, too, waits for us
        blocking.set()
        done.wait(60)
        connection.rollback()

    blocker = threading.Thread(target=run_with_connection, args=(empty, block))
    blocker.start()
    try:
        assert blocking.wait(20)
        child = start_migrating(empty)
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        assert until(lambda: fetch_value(empty, waiting), 20), "it never came to that table"
        child.kill()
        child.communicate(timeout=20)
    finally:
        done.set()
        blocker.join()
    idle = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    assert until(lambda: fetch_value(empty, idle), 20)
    assert fetch_value(empty, TABLES) in (0, 1)  # at most the table of versions, and that one empty
    assert current(empty) is None
    assert migrate(empty) is True
    assert fetch_value(empty, TABLES) == len(metadata.tables) + 1


def upgrade(dsn: str, revision: str) -> None:
    def run(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(SCRIPTS))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()

    run_with_connection(dsn, run)


def test_session_tokens_of_an_older_version_get_a_sign_in(empty: str) -> None:
    upgrade(empty, "0009")
    fetch_value(empty, "INSERT INTO users (user_id, login, login_key) VALUES ('5', 'a@b.c', 'a@b.c')")
    for digest in ("\\x01", "\\x02"):
        fetch_value(
            empty, f"INSERT INTO session_tokens VALUES ('{digest}', '5', 'long', NULL, now() + interval '1 day')"
        )
    assert migrate(empty) is True
    found = "SELECT count(DISTINCT s.id) FROM session_tokens t JOIN sign_ins s ON s.id = t.sign_in AND s.user_id = '5'"
    assert fetch_value(empty, f"{found} WHERE s.auth = 'gsid' AND NOT s.ended AND s.expires = t.expires") == 2


def test_project_names_of_an_older_version_are_compared_in_one_form(empty: str) -> None:
    """Of names that are the same now, an id wins over an alias, and an older project over a younger one."""
    upgrade(empty, "0014")
    for project, age, aliases in (
        ("red_dawn", 3, ["Red-Dawn", "RD", "rd", "First"]),
        ("blue", 2, ["RED_dawn", "r-d", "first", "Own"]),
        ("own", 1, []),
    ):
        listed = ", ".join(f"'{alias}'" for alias in aliases)
        fetch_value(
            empty,
            f"INSERT INTO projects (id, title, aliases, created) VALUES "
            f"('{project}', '{project}', ARRAY[{listed}]::text[], now() - interval '{age} days')",
        )
        for name in (project, *aliases):
            fetch_value(empty, f"INSERT INTO project_names VALUES ('{name}', '{project}')")
    fetch_value(empty, "INSERT INTO project_names VALUES ('new_title', 'own')")
    fetch_value(empty, "INSERT INTO applications (application_id, name, project_id) VALUES (10, 'a', 'blue')")
    for project in ("blue", "own"):
        member = f"('{project}', '5', 'applications', '10', 'viewer')"
        fetch_value(empty, f"INSERT INTO project_members (project_id, user_id, level, resource, role) VALUES {member}")
    assert migrate(empty) is True
    kept = "SELECT string_agg(id || '=' || array_to_string(aliases, ','), ' ' ORDER BY id) FROM projects"
    assert fetch_value(empty, kept) == "blue=r-d own= red_dawn=RD,First"
    names = "SELECT string_agg(name || '=' || project_id, ' ' ORDER BY name) FROM project_names"
    found = "blue=blue first=red_dawn new_title=own own=own r_d=blue rd=red_dawn red_dawn=red_dawn"
    assert fetch_value(empty, names) == found
    assert fetch_value(empty, "SELECT string_agg(project_id, ',') FROM project_members") == "blue"


def test_a_database_that_cannot_be_reached_is_told_in_a_word() -> None:
    with pytest.raises(Exception, match=r"^ConnectionRefusedError$"):
        migrate("postgresql://sso:hunter2@127.0.0.1:1/none")
    with pytest.raises(Exception, match=r"^the database URL is not valid$"):
        migrate("postgresql://sso:hunter2@127.0.0.1:hunter2/none")
