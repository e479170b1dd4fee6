"""Reads of much data leave the event loop and the connections to others."""

import threading
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import trio

from sso.db.connection_share import reads_for_sign_in
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.record_comparison import RecordComparison
from sso.perm.stores import compilation, facts_decoding, user_rows
from sso.perm.stores import facts as stored_facts
from sso.perm.stores.compilation import MAX_STORED_BYTES
from sso.perm.stores.facts import FEW_PAIRS, MUCH_DATA, StoredFacts
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.user_rows import EncodedUserReader, decode_users, read_user_rows
from tests.kit.conditions import until_true
from tests.kit.open_database import open_database

_SETUP = (
    "INSERT INTO applications (application_id, name) OVERRIDING SYSTEM VALUE VALUES (10, 'ten'), (11, 'eleven')",
    "INSERT INTO users (user_id, login, login_key) VALUES ('1', 'ann@x.org', 'ann@x.org')",
)


async def change(tx: Transaction, statements: list[Statement]) -> None:
    for statement in statements:
        await tx.value(statement)


async def load(facts: StoredFacts, user_id: str) -> LoadedFacts:
    loaded = await facts.load(user_id, 10, None)
    assert loaded is not None
    return loaded


def add_data(user_id: str, size: int) -> Statement:
    return Statement(
        f"""INSERT INTO user_records (user_id, application_id, public_data)
        VALUES ('{user_id}', 10, jsonb_build_object('x', repeat('x', {size})))"""
    )


async def test_large_json_of_facts_is_decoded_in_a_thread(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []  # for each large JSON, whether it was decoded in another thread
    loads = orjson.loads

    def loads_seen(text: str | bytes) -> Any:
        if len(text) > compilation.LARGE_BYTES:
            threads.append(threading.current_thread() is not threading.main_thread())
        return loads(text)

    monkeypatch.setattr(orjson, "loads", loads_seen)  # before connections are opened, which remember it
    async with open_database(dsn, 2) as database:
        await database.transaction(change, [*map(Statement, _SETUP), add_data("1", 2 * compilation.LARGE_BYTES)])
        facts = StoredFacts(database)
        assert (await load(facts, "1")).is_large
        assert len(await facts.load_pairs([("1", 10), ("2", 10)], None)) == 2
    assert threads == [True, True]


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Database]:
    """A database with two connections for management."""
    async with open_database(dsn, 8) as database:
        await database.transaction(change, [Statement(sql) for sql in _SETUP])
        yield database


def many_pairs() -> list[tuple[str, int]]:
    return [(str(number), 10) for number in range(FEW_PAIRS + 1)]


async def test_read_of_many_users_waits_for_the_turn_of_its_application(pool: Database) -> None:
    facts = StoredFacts(pool)
    pairs = many_pairs()
    async with trio.open_nursery() as nursery, pool.shares.management.turn((("application", 10),)):
        nursery.start_soon(facts.load_pairs, pairs, None)
        await until_true(lambda: len(pool.shares.management) == 1)
        assert len(await facts.load_pairs(pairs[:FEW_PAIRS], None)) == FEW_PAIRS
        assert len(await facts.load_pairs([(user_id, 11) for user_id, _ in pairs], None)) == len(pairs)
        assert len(pool.shares.management) == 1
    with pool.shares.limit_management("user 1", is_root=False):
        async with pool.shares.management.turn((("application", 10),)):  # this request has another turn
            assert len(await facts.load_pairs(pairs, None)) == len(pairs)


async def test_read_of_many_users_keeps_only_some_with_much_data_in_memory(
    pool: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = "('2', 'bob@x.org', 'bob@x.org'), ('3', 'eve@x.org', 'eve@x.org')"
    users = Statement(f"INSERT INTO users (user_id, login, login_key) VALUES {values}")
    await pool.transaction(change, [users, *(add_data(user_id, 2000) for user_id in "123")])
    facts, pairs = StoredFacts(pool), [(user_id, 10) for user_id in "123"]
    for limit, kept in ((5000, 3), (3000, 2), (0, 1)):
        monkeypatch.setattr(stored_facts, "MAX_PAIRS_DATA", limit)
        assert len(await facts.load_pairs(pairs, None)) == kept


async def test_user_who_was_left_out_for_much_data_is_not_read_in_a_batch(
    pool: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = Statement("INSERT INTO users (user_id, login, login_key) VALUES ('2', 'bob@x.org', 'bob@x.org')")
    await pool.transaction(change, [user, *(add_data(user_id, 2 * MUCH_DATA) for user_id in "12")])
    monkeypatch.setattr(stored_facts, "MAX_PAIRS_DATA", 0)
    facts = StoredFacts(pool)
    ((kept, _),) = await facts.load_pairs([("1", 10), ("2", 10)], None)
    async with trio.open_nursery() as nursery, pool.shares.management.turn((("application", 10),)):
        nursery.start_soon(load, facts, "2" if kept == "1" else "1")
        await until_true(lambda: len(pool.shares.management) == 1)


async def test_users_who_are_evaluated_are_decoded_in_parts(pool: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await pool.transaction(change, [add_data("1", 2000)])
    values = "('2', 'bob@x.org', 'bob@x.org'), ('3', 'eve@x.org', 'eve@x.org')"
    users = Statement(f"INSERT INTO users (user_id, login, login_key) VALUES {values}")
    await pool.transaction(change, [users, add_data("2", 2000), add_data("3", 10)])
    for limit, *expected in ((5000, ["3", "2", "1"]), (3000, ["3", "2"], ["1"]), (0, ["3"], ["2"], ["1"])):
        monkeypatch.setattr(user_rows, "MAX_PART_DATA", limit)
        encoded = EncodedUserReader(pool, 10, ["3", "4", "2", "1"])
        decoded = [await decode_users(pool, part) async for part in encoded]
        assert [list(part) for part in decoded] == expected
    assert decoded[1]["2"].own.public_data == {"x": "x" * 2000}


async def test_read_of_much_data_is_no_part_of_a_batch(pool: Database) -> None:
    facts = StoredFacts(pool)
    await pool.transaction(change, [add_data("1", 2 * MUCH_DATA)])
    await load(facts, "1")
    async with trio.open_nursery() as nursery, pool.shares.management.turn((("application", 10),)):
        nursery.start_soon(load, facts, "1")
        await until_true(lambda: len(pool.shares.management) == 1)
        await load(facts, "2")
        with reads_for_sign_in():
            await load(facts, "1")
        assert len(pool.shares.management) == 1
    await pool.transaction(change, [Statement("DELETE FROM user_records")])
    await load(facts, "1")
    async with pool.shares.management.turn((("application", 10),)):
        assert (await load(facts, "1")).json_bytes < MUCH_DATA


MUCH_TEXT = 100_000


def add_text(user_id: str, size: int) -> Statement:
    """Text that cannot be compressed."""
    text = "string_agg(encode(sha256(convert_to(random()::text, 'UTF8')), 'base64'), '')"
    return Statement(
        f"""INSERT INTO user_records (user_id, application_id, public_data)
        SELECT '{user_id}', 10, jsonb_build_object('x', left({text}, {size})) FROM generate_series(1, {size // 40})"""
    )


@pytest.fixture
async def users_with_much_data(pool: Database) -> list[str]:
    """Ten users, one of them without data. The data of the others cannot be compressed."""
    ids = [str(number) for number in range(20, 30)]
    logins = ", ".join(f"('{user_id}', '{user_id}@x.org', '{user_id}@x.org')" for user_id in ids)
    records = [add_text(user_id, MUCH_TEXT) for user_id in ids if user_id != "25"]
    users = Statement(f"INSERT INTO users (user_id, login, login_key) VALUES {logins}")
    await pool.transaction(change, [users, *records])
    return ids


@pytest.fixture
def counts(pool: Database, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many users with data each statement has returned."""
    counts: list[int] = []
    read_rows = Database.rows

    async def rows(self: Database, statement: Statement, **values: Any) -> Any:
        found = await read_rows(self, statement, **values)
        if found and "record" in dict(found[0]):
            counts.append(sum(len(row["record"] or "") >= MUCH_TEXT for row in found))
        return found

    monkeypatch.setattr(Database, "rows", rows)
    return counts


async def test_statement_returns_some_of_the_data_of_many_users(
    pool: Database, users_with_much_data: list[str], counts: list[int]
) -> None:
    """Users who are evaluated stay in the order of the request."""
    ids = [*users_with_much_data[::-1], "1000"]
    assert list(await read_user_rows(pool, 10, ids)) == ids[:-1]
    assert counts == [3, 3, 3]
    counts.clear()
    assert len(await read_user_rows(pool, 10, ids[:3])) == 3
    assert len(await read_user_rows(pool, 11, ids)) == 10
    assert len(await read_user_rows(pool, 10, ids, with_data=False)) == 10
    assert counts == [3, 0, 0]


async def test_user_with_much_data_who_is_named_twice_is_read(pool: Database, users_with_much_data: list[str]) -> None:
    await pool.value(add_text("1", 2 * MAX_STORED_BYTES))
    assert list(await read_user_rows(pool, 10, ["1", "1", *users_with_much_data])) == ["1", *users_with_much_data]


async def test_much_data_without_a_user_hides_no_other_users(pool: Database, users_with_much_data: list[str]) -> None:
    await pool.value(add_text("2", 2 * MAX_STORED_BYTES))
    assert list(await read_user_rows(pool, 10, ["2", *users_with_much_data])) == users_with_much_data


async def test_statement_returns_some_of_the_data_of_users_in_questions(
    pool: Database, users_with_much_data: list[str], counts: list[int]
) -> None:
    facts, pairs = StoredFacts(pool), [(user_id, 10) for user_id in users_with_much_data]
    loaded = await facts.load_pairs([*pairs, ("20", 99), ("1", 10)], None)
    assert loaded.keys() == {*pairs, ("1", 10)}
    assert all(len(loaded[pair].facts.own.public_data.get("x", "")) in (0, MUCH_TEXT) for pair in pairs)
    assert counts == [3, 3, 3, 0]
    counts.clear()
    assert len(await facts.load_pairs([("20", 10), *((user_id, 11) for user_id in users_with_much_data)], None)) == 11
    assert counts == [1]


async def test_records_of_a_write_are_not_decoded_together(pool: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    user = Statement("INSERT INTO users (user_id, login, login_key) VALUES ('2', 'bob@x.org', 'bob@x.org')")
    await pool.transaction(change, [user, add_data("1", 10), add_data("2", 10)])
    steps: list[str] = []
    decode, evaluate = facts_decoding.decode_row, RecordComparison._evaluate

    async def decoded(*arguments: Any) -> Any:
        steps.append("decode")
        return await decode(*arguments)

    def evaluated(*arguments: Any) -> Any:
        steps.append("evaluate")
        return evaluate(*arguments)

    monkeypatch.setattr(stored_facts, "decode_row", decoded)
    monkeypatch.setattr(RecordComparison, "_evaluate", evaluated)
    await pool.transaction(RecordComparison(StoredFacts(pool), [("1", 10), ("2", 10)], 0).begin)
    assert steps == ["decode", "evaluate"] * 2
