import random
from functools import partial

import pytest
import trio

from sso.db.batch.statement_batch import Batch
from sso.db.circuit_breaker import PAUSE_S
from sso.db.database import Database
from sso.db.errors import DeadlineExceeded, Unavailable, UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Transaction

COUNT = Statement("SELECT count(*) FROM throttle")
PUT = Statement(
    """INSERT INTO throttle (key, failures, since, blocked_until, expires)
    VALUES (:key, :failures, now(), now(), now())"""
)
SLEEP = Statement("SELECT pg_sleep(:seconds)")
GIVE_UP_S = 1.5  # before the database does, and long enough for what is quick on a slow machine


async def test_a_transaction_commits_all_or_nothing(database: Database) -> None:
    async def work(tx: Transaction) -> None:
        await tx.value(PUT, key=b"a", failures=1)
        raise ValueError("changed my mind")

    with pytest.raises(ValueError, match="changed"):
        await database.transaction(work)
    assert await database.value(COUNT) == 0


async def test_what_is_unique_is_told_by_its_constraint(database: Database) -> None:
    await database.value(PUT, key=b"a", failures=1)
    with pytest.raises(UniqueViolation) as caught:
        await database.value(PUT, key=b"a", failures=1)
    assert caught.value.constraint == "pk_throttle"
    assert await database.value(COUNT) == 1  # and the connection is still good


async def test_a_wrong_value_is_not_taken_for_a_lost_connection(database: Database) -> None:
    with pytest.raises(Exception, match=r"failures|expected|invalid") as caught:
        await database.value(PUT, key=b"a", failures="many")
    assert not isinstance(caught.value, Unavailable)


async def test_an_error_that_nobody_expected_quotes_no_row(database: Database) -> None:
    await database.run_sql("ALTER TABLE throttle ADD CHECK (failures < 100)", [])
    with pytest.raises(Exception, match="throttle_failures_check") as caught:
        await database.value(PUT, key=b"a secret", failures=100)
    assert b"a secret".hex() not in str(caught.value)
    assert "DETAIL" not in str(caught.value)


async def put(key: bytes, tx: Transaction) -> None:
    await tx.value(PUT, key=key, failures=1)


async def test_a_cancelled_call_has_happened_wholly(database: Database) -> None:
    """Cancelled never means "perhaps": a call that began is finished before the cancellation is felt."""
    started = 0
    for at in range(100):
        with trio.move_on_after(random.uniform(0, 0.004)):
            key = str(at).encode()
            started += 1
            await database.transaction(partial(put, key))
            started -= 1
            # Whoever gets here knows that it is committed.
            assert await database.value(Statement("SELECT 1 FROM throttle WHERE key = :key"), key=key) == 1
    assert await database.value(COUNT) + started >= 100


async def test_a_call_that_takes_too_long_is_given_up_and_its_connection_not_used_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.ping()
    monkeypatch.setattr("sso.db.database.QUEUE_S", 0.2)
    with pytest.raises(DeadlineExceeded):
        await database.long_transaction(0.2, lambda tx: tx.value(SLEEP, seconds=1.5))
    await trio.sleep(PAUSE_S)
    assert await database.value(Statement("SELECT 7")) == 7


async def test_a_single_statement_is_given_up_within_two_seconds(database: Database) -> None:
    """By the database itself, which then knows that nothing has happened."""
    add = Statement("UPDATE throttle SET failures = failures + 1 WHERE key = :key RETURNING pg_sleep(4)")
    await database.value(PUT, key=b"a", failures=0)
    began = trio.current_time()
    with pytest.raises(Unavailable) as caught:
        await database.value(add, key=b"a")
    assert not isinstance(caught.value, DeadlineExceeded)
    assert trio.current_time() - began < 4  # before it would be done
    await trio.sleep(max(0.0, began + 4.5 - trio.current_time()))
    assert await database.value(Statement("SELECT sum(failures) FROM throttle")) == 0


async def test_several_statements_have_longer(database: Database) -> None:
    assert await database.transaction(lambda tx: tx.value(Statement("SELECT 7 FROM pg_sleep(2.2)"))) == 7
    assert await database.value(Statement("SHOW statement_timeout")) == "1800ms"  # and then it is as before


async def test_a_slow_statement_does_not_stand_in_the_way_of_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.db.database.STATEMENT_S", GIVE_UP_S)
    answered = 0

    async def ask_on() -> None:
        nonlocal answered
        while True:
            await database.ping()
            answered += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_on)
        with pytest.raises(DeadlineExceeded):
            await database.value(SLEEP, seconds=3)
        before = answered
        for _ in range(20):
            await database.ping()
        assert answered > before
        nursery.cancel_scope.cancel()


async def test_while_nothing_is_answered_all_but_one_are_refused_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.db.database.STATEMENT_S", GIVE_UP_S)
    with pytest.raises(DeadlineExceeded):
        await database.value(SLEEP, seconds=3)
    refused = 0
    for _ in range(50):
        with pytest.raises(Unavailable, match="unavailable"):
            await database.ping()
        refused += 1
    await trio.sleep(PAUSE_S)
    await database.ping()  # is let through, and finds that all is well
    await database.ping()
    assert refused == 50


async def test_who_waits_for_a_statement_that_gets_no_answer_is_told_with_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.db.database.STATEMENT_S", GIVE_UP_S)
    each = "FROM unnest(CAST(:ids AS int[])) WITH ORDINALITY AS item (id, n)"
    slow = Batch(database, Statement(f"SELECT item.n, pg_sleep(5) {each}"))
    ends: list[float] = []

    async def one(number: int) -> None:
        await trio.sleep(number / 100)
        with pytest.raises(Unavailable):
            await slow(number)
        ends.append(trio.current_time() - began)

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(one, number)
    assert len(ends) == 10
    assert max(ends) < 2 * GIVE_UP_S  # once through it, not twice
    await trio.sleep(PAUSE_S)
    assert await Batch(database, Statement(f"SELECT item.n {each}"))(1) is not None


async def test_terminated_connections_are_replaced(database: Database) -> None:
    async def spread() -> None:
        await database.value(SLEEP, seconds=0.05)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(spread)
    with pytest.raises(Unavailable):
        await database.value(
            Statement("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()")
        )
    await trio.sleep(0.1)
    for _ in range(8):
        assert await database.value(Statement("SELECT 7")) == 7


async def test_a_deadlock_is_run_again(database: Database) -> None:
    await database.value(PUT, key=b"a", failures=0)
    await database.value(PUT, key=b"b", failures=0)
    add = Statement("UPDATE throttle SET failures = failures + 1 WHERE key = :key RETURNING pg_sleep(0.1)")

    async def both(first: bytes, second: bytes) -> None:
        async def work(tx: Transaction) -> None:
            await tx.value(add, key=first)
            await tx.value(add, key=second)

        await database.transaction(work)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(both, b"a", b"b")
        nursery.start_soon(both, b"b", b"a")
    assert await database.value(Statement("SELECT sum(failures) FROM throttle")) == 4


async def test_no_server_is_unavailable_at_once() -> None:
    async with Database.open("postgresql://sso@127.0.0.1:1/none") as database:
        with trio.fail_after(2), pytest.raises(Unavailable):
            await database.ping()


async def test_transaction_passes_arguments_to_its_function(database: Database) -> None:
    async def put(tx: Transaction, key: bytes, failures: int) -> int:
        await tx.value(PUT, key=key, failures=failures)
        return failures

    assert await database.transaction(put, b"a", 3) == 3
    assert await database.value(COUNT) == 1
