"""Transactions and statements: errors, deadlines, cancellation, and lost connections."""

import random
import time

import pytest
import trio
from msgspec.structs import replace

from sso.db.database import Database
from sso.db.errors import DeadlineExceeded, Unavailable, UniqueViolation
from sso.db.statement import Statement
from sso.db.time_limits import TimeLimits
from sso.db.transaction import Runner, Transaction
from tests.kit.open_database import open_database
from tests.kit.row_locks import changed_by_another_transaction
from tests.kit.server import SLOW_MACHINE_S

COUNT = Statement("SELECT count(*) FROM throttle")
INSERT = Statement(
    """INSERT INTO throttle (key, failures, since, blocked_until, expires)
    VALUES (:key, :failures, now(), now(), now())"""
)
SLEEP = Statement("SELECT pg_sleep(:seconds)")
SUM = Statement("SELECT sum(failures) FROM throttle")
TIMEOUT_S = 60  # generous, for slow machines


async def insert(tx: Transaction, key: bytes, failures: int = 1) -> int:
    await tx.value(INSERT, key=key, failures=failures)
    return failures


async def exceed_deadline(database: Database, monkeypatch: pytest.MonkeyPatch, seconds: float = 0.1) -> None:
    """Runs a transaction that gets no answer before its deadline. Other calls keep theirs."""
    with monkeypatch.context() as patch:
        patch.setattr(database, "limits", replace(database.limits, queue_s=0, transaction_s=seconds))
        with pytest.raises(DeadlineExceeded):
            await database.transaction(lambda tx: tx.value(SLEEP, seconds=seconds + 10))


async def test_transaction_passes_arguments_to_its_function(database: Database) -> None:
    assert await database.transaction(insert, b"a", failures=3) == 3
    assert await database.value(SUM) == 3


async def test_failed_transaction_is_rolled_back(database: Database) -> None:
    async def insert_and_fail(tx: Transaction) -> None:
        await insert(tx, b"a")
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        await database.transaction(insert_and_fail)
    assert await database.value(COUNT) == 0


async def test_unique_violation_names_its_constraint(database: Database) -> None:
    await database.value(INSERT, key=b"a", failures=1)
    with pytest.raises(UniqueViolation) as caught:
        await database.value(INSERT, key=b"a", failures=1)
    assert caught.value.constraint == "pk_throttle"
    assert await database.value(COUNT) == 1  # the connection can still be used


async def test_transaction_is_retried_after_a_migration_has_added_a_column(dsn: str) -> None:
    async def read(tx: Transaction) -> int:
        await tx.value(INSERT, key=b"a", failures=1)
        (row,) = await tx.rows(Statement("DELETE FROM throttle RETURNING *"))
        return len(row)

    async with open_database(dsn, 1) as database:
        columns = await database.transaction(read)
        await database.run_sql("ALTER TABLE throttle ADD COLUMN further int", [])
        assert await database.transaction(read) == columns + 1
        assert database.epoch == 1, "the connection has not been replaced"


async def test_invalid_value_is_not_reported_as_unavailable(database: Database) -> None:
    with pytest.raises(Exception, match=r"failures|expected|invalid") as caught:
        await database.value(INSERT, key=b"a", failures="many")
    assert not isinstance(caught.value, Unavailable)


async def test_other_errors_do_not_quote_the_row(database: Database) -> None:
    await database.run_sql("ALTER TABLE throttle ADD CHECK (failures < 100)", [])
    with pytest.raises(Exception, match="throttle_failures_check") as caught:
        await database.value(INSERT, key=b"a secret", failures=100)
    assert b"a secret".hex() not in str(caught.value)
    assert "DETAIL" not in str(caught.value)


async def test_call_that_has_started_is_finished_before_it_is_cancelled(database: Database) -> None:
    """A call that returns has committed, and a call that is cancelled has committed or not started."""
    not_returned = 0
    for number in range(100):
        with trio.move_on_after(random.uniform(0, 0.004)):
            key = str(number).encode()
            not_returned += 1
            await database.transaction(insert, key)
            not_returned -= 1
            assert await database.value(Statement("SELECT 1 FROM throttle WHERE key = :key"), key=key) == 1
    assert await database.value(COUNT) + not_returned >= 100


async def test_connection_of_a_call_that_exceeded_its_deadline_is_not_used_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.ping()
    [connection] = database._pool._idle
    await exceed_deadline(database, monkeypatch)
    assert connection.is_closed()
    database._breaker.record_success()
    assert await database.value(Statement("SELECT 7")) == 7


async def test_transaction_that_computes_while_the_service_stops_is_rolled_back(database: Database) -> None:
    async def work(tx: Transaction) -> None:
        await insert(tx, b"a")
        await tx.run_in_thread(time.sleep, 0.5)
        await insert(tx, b"b")

    await database.ping()
    database.deadlines.end_calls_by(trio.current_time() + 0.2)
    with pytest.raises(DeadlineExceeded, match=r"^the service stops$"):
        await database.transaction(work)
    database.deadlines.end = float("inf")
    database._breaker.record_success()
    assert await database.value(COUNT) == 0


async def test_database_ends_a_long_statement_before_our_deadline(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is known that the statement was rolled back."""
    update = Statement("UPDATE throttle SET failures = failures + 1 WHERE key = :key RETURNING pg_sleep(10)")
    async with Database.open(dsn, 1, limits=TimeLimits.scaled(2)) as database:
        await database.value(INSERT, key=b"a", failures=0)
        # The connection keeps its limits. Ours grows, for a machine that stalls between the two.
        monkeypatch.setattr(database, "limits", TimeLimits.scaled(SLOW_MACHINE_S))
        with pytest.raises(Unavailable) as caught:
            await database.value(update, key=b"a")
        assert not isinstance(caught.value, DeadlineExceeded)
        assert await database.value(SUM) == 0


async def test_transactions_have_longer_timeouts_than_single_statements(database: Database) -> None:
    show = Statement("SHOW statement_timeout")
    assert await database.transaction(lambda tx: tx.value(show)) == "45s"
    assert await database.value(show) == "18s"


async def test_slow_statement_does_not_open_the_circuit_breaker(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ping_regularly() -> None:
        while True:
            await database.ping()
            await trio.sleep(0.05)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ping_regularly)
        await exceed_deadline(database, monkeypatch, seconds=3)  # some pings are answered meanwhile, also if it stalls
        for _ in range(20):
            await database.ping()
        nursery.cancel_scope.cancel()


async def test_open_circuit_breaker_rejects_all_calls_but_a_probe(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.db.circuit_breaker.PAUSE_S", 3600.0)
    await exceed_deadline(database, monkeypatch)
    for _ in range(50):
        with pytest.raises(Unavailable, match="unavailable"):
            await database.ping()
    database._breaker._next_probe = trio.current_time()  # as if the pause were over
    await database.ping()  # the probe, which closes the breaker
    await database.ping()


async def test_terminated_connections_are_replaced(database: Database) -> None:
    await database.open_connections()
    assert len(database._pool._idle) > 1
    # The others first: a statement that terminates its own connection ends before it has terminated them all.
    await database.rows(
        Statement(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()"""
        )
    )
    with pytest.raises(Unavailable):  # on the connection that was used last
        await database.value(Statement("SELECT pg_terminate_backend(pg_backend_pid())"))
    with trio.fail_after(TIMEOUT_S):
        while not all(connection.is_closed() for connection in database._pool._idle):  # noqa: ASYNC110 - no event
            await trio.sleep(0.01)
    for _ in range(8):
        assert await database.value(Statement("SELECT 7")) == 7


async def test_transaction_that_deadlocked_runs_again(database: Database) -> None:
    await database.value(INSERT, key=b"a", failures=0)
    await database.value(INSERT, key=b"b", failures=0)
    update = Statement("UPDATE throttle SET failures = failures + 1 WHERE key = :key RETURNING pg_sleep(0.1)")

    async def update_both(tx: Transaction, first: bytes, second: bytes) -> None:
        await tx.value(update, key=first)
        await tx.value(update, key=second)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(database.transaction, update_both, b"a", b"b")
        nursery.start_soon(database.transaction, update_both, b"b", b"a")
    assert await database.value(SUM) == 4


ADD_CLIENT = Statement("INSERT INTO oauth_clients (client_id) VALUES ('shop')")
ADD_STREAM = Statement(
    """INSERT INTO signal_streams (stream_id, client_id, method)
    SELECT 's', client_id, 'poll' FROM oauth_clients RETURNING client_id"""
)
ADD_ORPHAN = Statement("INSERT INTO signal_streams (stream_id, client_id, method) VALUES ('s', 'nobody', 'poll')")


@pytest.mark.parametrize("in_transaction", [True, False])
async def test_row_whose_parent_is_deleted_meanwhile_is_not_added(database: Database, in_transaction: bool) -> None:
    await database.value(ADD_CLIENT)
    added: list[str | None] = []

    async def add() -> None:
        if in_transaction:
            added.append(await database.transaction(lambda tx: tx.value(ADD_STREAM)))
        else:
            added.append(await database.value(ADD_STREAM))

    async with trio.open_nursery() as nursery:
        with changed_by_another_transaction(database.dsn, "DELETE FROM oauth_clients"):
            nursery.start_soon(add)
            await wait_for_a_lock(database)
    assert added == [None]


async def wait_for_a_lock(database: Database) -> None:
    waiting = Statement("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with trio.fail_after(TIMEOUT_S):
        while not await database.value(waiting):  # noqa: ASYNC110 - no event
            await trio.sleep(0.01)


@pytest.mark.parametrize("in_transaction", [True, False])
async def test_row_that_never_has_a_parent_is_an_error_that_names_the_constraint(
    database: Database, in_transaction: bool
) -> None:
    """The request is run again a few times, because a parent that was just deleted looks the same."""

    async def add(runner: Runner) -> None:
        await runner.value(ADD_ORPHAN)

    with pytest.raises(Unavailable, match="ForeignKeyViolationError of fk_signal_streams_client_id"):
        await (database.transaction(add) if in_transaction else add(database))
    assert await database.value(Statement("SELECT count(*) FROM signal_streams")) == 0


async def test_unreachable_server_is_reported_as_unavailable() -> None:
    async with Database.open("postgresql://sso@127.0.0.1:1/none") as database:
        with pytest.raises(Unavailable):
            await database.ping()
