"""The triggers that keep the history of permission data, and its beginning."""

from typing import Any

import pytest

from sso.db import cleanup
from sso.db.database import Database
from sso.db.migrations import permission_history
from sso.db.statement import Statement
from sso.db.tables import metadata
from sso.db.transaction import Transaction

# Columns that no fact depends on, and secrets. A new column of these tables belongs here or into the versions.
NOT_KEPT = {
    "users": {column.name for column in metadata.tables["users"].c} - {"user_id", "login", "tags", "purchases", "bans"},
    "applications": {
        *("description", "service_meta", "private_key_sealed", "email_secret_sealed", "created"),
        "data_secret_sealed",
        *("version", "updated_at", "revision", "assertions"),
    },
    "projects": {"display_name", "description", "tags", "author", "created"},
    "user_groups": {"description", "created"},
    "group_users": {"position"},
}


ADD_USER = Statement(
    "INSERT INTO users (user_id, login, login_key, tags) VALUES ('7', 'ann@x.org', 'ann@x.org', '{a}')"
)
UPDATE_NICK = Statement("UPDATE users SET nick = 'Ann', password_hash = 'secret', tags = '{a}'")
UPDATE_TAGS = Statement("UPDATE users SET tags = '{b}'")
DELETE_USER = Statement("DELETE FROM users WHERE user_id = '7'")
ASSIGN = Statement(
    "INSERT INTO role_assignments (user_id, application_id, name, position) VALUES ('7', 1, :name, :position)"
)
CLEAR = Statement("DELETE FROM role_assignments WHERE user_id = '7'")
VERSIONS = Statement("SELECT kind, key, image FROM permission_versions ORDER BY id")
COMMITS = Statement("SELECT count(*) FROM permission_commits")
FORGET = Statement("DELETE FROM permission_versions")
FORGET_COMMITS = Statement("DELETE FROM permission_commits")
TIMES = Statement("SELECT at FROM permission_commits ORDER BY id")
NOW = Statement("SELECT clock_timestamp()")
ROLE: dict[str, Any] = {"user_id": "7", "application_id": 1, "expired": 0, "ttl": 0}


@pytest.fixture
async def database(database: Database) -> Database:
    """A database without the history of the built-in application."""
    await database.value(FORGET)
    await database.value(FORGET_COMMITS)
    return database


async def versions(database: Database) -> list[tuple[str, str, Any]]:
    return [(row["kind"], row["key"], row["image"]) for row in await database.rows(VERSIONS)]


async def assign(tx: Transaction | Database, *names: str) -> None:
    """Replaces the roles as a save does."""
    await tx.value(CLEAR)
    for position, name in enumerate(names):
        await tx.value(ASSIGN, name=name, position=position)


def test_every_column_is_kept_or_listed_as_not_kept() -> None:
    for kind, (table, *_, kept) in permission_history.KINDS.items():
        if kind == table:
            assert {column.name for column in metadata.tables[table].c} == {*kept, *NOT_KEPT.get(table, ())}, table
            assert not any(metadata.tables[table].c[name].info.get("sealed") for name in kept)


async def test_versions_are_rows_before_the_change(database: Database) -> None:
    await database.value(ADD_USER)
    await database.value(UPDATE_TAGS)
    created = {"user_id": "7", "login": "ann@x.org", "tags": ["a"], "purchases": [], "bans": None}
    assert await versions(database) == [("users", "", None), ("users", "", created)]
    assert await database.value(COMMITS) == 2


async def test_other_columns_cost_nothing(database: Database) -> None:
    await database.value(ADD_USER)
    await database.value(UPDATE_NICK)
    assert await database.value(COMMITS) == 1
    assert [version[2] for version in await versions(database)] == [None]


async def test_rows_that_are_written_again_have_no_version(database: Database) -> None:
    await database.transaction(assign, "guard", "baker")
    assert await versions(database) == [(("role_assignments"), f"1/{name}", None) for name in ("guard", "baker")]
    await database.value(FORGET)
    await database.transaction(assign, "guard", "baker")
    assert await versions(database) == []
    await database.transaction(assign, "guard", "cook")
    baker = ROLE | {"name": "baker", "position": 1}
    assert await versions(database) == [("role_assignments", "1/baker", baker), ("role_assignments", "1/cook", None)]


async def test_version_of_several_changes_is_the_row_before_the_first(database: Database) -> None:
    await database.transaction(assign, "guard")
    await database.value(FORGET)

    async def change_twice(tx: Transaction) -> None:
        await assign(tx, "cook", "guard")
        await assign(tx)
        await assign(tx, "baker")

    await database.transaction(change_twice)
    guard = ROLE | {"name": "guard", "position": 0}
    assert {key: image for _, key, image in await versions(database)} == {
        "1/guard": guard,
        "1/cook": None,
        "1/baker": None,
    }


async def test_time_of_a_transaction_is_that_of_its_end(database: Database) -> None:
    async def slow(tx: Transaction) -> Any:
        await assign(tx, "guard")
        return await tx.value(NOW)

    before_end = await database.transaction(slow)
    (row,) = await database.rows(TIMES)
    assert before_end < row["at"] < await database.value(NOW)


async def test_failed_transaction_leaves_nothing_and_the_next_has_its_own_commit(database: Database) -> None:
    async def fail(tx: Transaction) -> None:
        await assign(tx, "guard")
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        await database.transaction(fail)
    assert await versions(database) == []
    assert await database.value(COMMITS) == 0
    await assign(database, "guard")
    await assign(database, "cook")
    assert await database.value(COMMITS) == 3  # each statement is a transaction; the first one deleted nothing


async def test_change_after_a_savepoint_that_was_rolled_back_has_a_commit(database: Database) -> None:
    async def roll_back_a_part(tx: Transaction) -> None:
        await tx.value(Statement("SAVEPOINT part"))
        await assign(tx, "guard")
        await tx.value(Statement("ROLLBACK TO SAVEPOINT part"))
        await assign(tx, "cook")

    await database.transaction(roll_back_a_part)
    joined = "SELECT key FROM permission_versions v JOIN permission_commits c ON c.id = v.commit_id"
    assert [row["key"] for row in await database.rows(Statement(joined))] == ["1/cook"]


async def test_erased_user_leaves_no_versions(database: Database) -> None:
    await database.value(ADD_USER)
    await database.value(UPDATE_TAGS)
    await assign(database, "guard")

    async def erase(tx: Transaction) -> None:
        await tx.value(CLEAR)
        await tx.value(DELETE_USER)

    await database.transaction(erase)
    assert await versions(database) == []


async def test_old_versions_are_deleted_and_the_history_begins_later(database: Database) -> None:
    since, age = (
        Statement("SELECT since FROM permission_history"),
        Statement("UPDATE permission_commits SET at = at - interval '3 days'"),
    )
    await database.value(Statement("UPDATE permission_history SET since = since - interval '9 days'"))
    begin = await database.value(since)
    await assign(database, "guard", "baker")
    await database.value(age)
    await assign(database, "cook")
    await cleanup.delete_expired(database, audit_days=0)
    await cleanup.delete_expired(database, audit_days=4)
    assert len(await versions(database)) == 5
    assert begin < await database.value(since)
    begin = await database.value(since)
    assert await cleanup.delete_expired(database, audit_days=2) == 4  # two versions and two commits
    assert len(await versions(database)) == 3
    assert begin < await database.value(since)
    assert await cleanup.delete_expired(database, audit_days=30) == 0
