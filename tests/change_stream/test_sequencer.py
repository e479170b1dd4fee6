"""Positions of events: no reader misses one, whatever the order of the commits. SSO_TEST_ROUNDS runs many rounds."""

import os
import random
import secrets

import pytest
import trio

from sso.bus.wiring import build_bus
from sso.change_stream.events import PENDING_TOPIC, Change, ChangeType, record_changes
from sso.change_stream.reader import ChangeReader, ExpiredCursor, UnknownCursor
from sso.change_stream.sequencer import ChangeSequencer
from sso.change_stream.store import MAX_PAGE_BYTES, number_events
from sso.db.cleanup import delete_expired
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.services import Services
from tests.kit.open_database import open_database

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "0")) or 3
WRITERS = 8
CHANGES = 5  # of each writer
_SLEEP = Statement("SELECT pg_sleep(:seconds)")
_AGE_EVENTS = Statement("UPDATE change_events SET position = position - 2 * 86400000000")
_AGE_STREAM = Statement(
    """UPDATE change_stream
    SET last_position = last_position - 2 * 86400000000, trimmed_to = trimmed_to - 2 * 86400000000"""
)


async def record(tx: Transaction, user_id: str, seconds: float = 0.0) -> None:
    """Records an event, and keeps the transaction open for a while afterwards."""
    await record_changes(tx, [Change(ChangeType.USER_DISABLED, user_id)])
    if seconds:
        await tx.value(_SLEEP, seconds=seconds)


def reader_of(database: Database) -> ChangeReader:
    return ChangeReader(database, build_bus(database))


async def read_users(reader: ChangeReader, after: str = "") -> list[str]:
    return [event.content["user_id"] for event in (await reader.read(after, 200)).events]


async def test_event_of_a_transaction_that_commits_late_comes_after_the_cursor(database: Database) -> None:
    reader = reader_of(database)
    recorded, may_commit = trio.Event(), trio.Event()

    async def record_late(tx: Transaction) -> None:
        await record(tx, "late")
        recorded.set()
        while not may_commit.is_set():
            await tx.value(_SLEEP, seconds=0.02)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(database.transaction, record_late)
        await recorded.wait()
        await database.transaction(record, "early")
        await database.transaction(number_events)
        page = await reader.read("", 200)
        assert [event.content["user_id"] for event in page.events] == ["early"]
        may_commit.set()
    await database.transaction(number_events)
    assert await read_users(reader, page.next) == ["late"]
    assert await read_users(reader) == ["early", "late"]


async def test_rolled_back_event_never_appears(database: Database) -> None:
    async def fail(tx: Transaction) -> None:
        await record(tx, "nobody")
        raise ValueError("rolled back")

    published: list[str] = []
    database.publish_topic = published.append
    with pytest.raises(ValueError, match="rolled back"):
        await database.transaction(fail)
    await database.transaction(number_events)
    assert (await read_users(reader_of(database)), published) == ([], [])


async def test_events_of_one_transaction_keep_their_order(database: Database) -> None:
    async def record_many(tx: Transaction) -> None:
        changes = [Change(ChangeType.PERMISSIONS_CHANGED, str(number), 7, {"gained": ["x"]}) for number in range(150)]
        await record_changes(tx, changes)

    await database.transaction(record_many)
    await database.transaction(number_events)
    assert await read_users(reader_of(database)) == [str(number) for number in range(150)]


async def test_no_reader_misses_or_repeats_an_event_while_writers_and_sequencers_race(dsn: str) -> None:
    """Several processes, each with its own connections, record and number events; cursors follow them."""
    async with open_database(dsn, 6) as first, open_database(dsn, 6) as second:
        for _ in range(ROUNDS):
            await _race(first, second)


async def _race(first: Database, second: Database) -> None:
    start = (await reader_of(first).read("", 200)).next
    while (page := await reader_of(first).read(start, 200)).events:
        start = page.next
    expected = WRITERS * CHANGES
    seen: list[list[str]] = [[], []]
    done = trio.Event()

    async def write(database: Database, name: str) -> None:
        for number in range(CHANGES):
            await database.transaction(record, f"{name}.{number}", random.choice((0.0, 0.0, 0.02, 0.1)))

    async def number(database: Database) -> None:
        while not done.is_set():
            await database.transaction(number_events)
            await trio.sleep(random.uniform(0, 0.003))

    async def follow(database: Database, users: list[str]) -> None:
        reader, cursor = reader_of(database), start
        while len(users) < expected:
            page = await reader.read(cursor, random.choice((1, 3, 200)))
            users += [event.content["user_id"] for event in page.events]
            cursor = page.next
        users += await read_users(reader, cursor)

    with trio.fail_after(60):
        async with trio.open_nursery() as background:
            background.start_soon(number, first)
            background.start_soon(number, second)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow, first, seen[0])
                nursery.start_soon(follow, second, seen[1])
                for writer in range(WRITERS):
                    nursery.start_soon(write, (first, second)[writer % 2], f"{writer}")
            done.set()
    assert len(seen[0]) == len(set(seen[0])) == expected
    assert seen[0] == seen[1]
    for writer in range(WRITERS):  # one change after the other: they stay in order
        own = [user for user in seen[0] if user.startswith(f"{writer}.")]
        assert own == [f"{writer}.{number}" for number in range(CHANGES)]


async def test_waiting_reader_returns_when_another_process_commits(dsn: str) -> None:
    async with open_database(dsn, 4) as first, open_database(dsn, 4) as second, trio.open_nursery() as nursery:
        writer_bus, reader_bus = build_bus(first), build_bus(second)
        sequencer, reader = ChangeSequencer(first, writer_bus), ChangeReader(second, reader_bus)
        await nursery.start(writer_bus.run)
        await nursery.start(reader_bus.run)
        await nursery.start(sequencer.run)
        await writer_bus.connected.wait()
        await reader_bus.connected.wait()
        start = (await reader.read("", 1)).next

        async def change_later() -> None:
            while not reader.waiting:  # noqa: ASYNC110 - nothing reports it
                await trio.sleep(0.01)
            await first.transaction(record, "ann")

        nursery.start_soon(change_later)
        with trio.fail_after(60):
            page = await reader.wait(start, 10, 60)
        assert [event.content["user_id"] for event in page.events] == ["ann"]
        nursery.cancel_scope.cancel()


async def test_page_of_long_events_is_short_and_the_next_one_follows(database: Database) -> None:
    reader = reader_of(database)
    lengths = [MAX_PAGE_BYTES // 3] * 4 + [3 * MAX_PAGE_BYTES, 0, 0]
    changes = [
        Change(ChangeType.PERMISSIONS_CHANGED, f"u{number}", 10, {"gained": [secrets.token_hex(length // 2)]})
        for number, length in enumerate(lengths)
    ]
    await database.transaction(record_changes, changes)
    await database.transaction(number_events)
    pages, after = [], ""
    while (page := await reader.read(after, 6, 10)).events:
        pages.append([event.content["user_id"] for event in page.events])
        after = page.next
    assert pages == [["u0", "u1", "u2"], ["u3", "u4"], ["u5", "u6"]]
    assert after == await reader.end()


async def test_deleting_old_events_ends_the_cursors_before_them_only(database: Database) -> None:
    reader = reader_of(database)
    await database.transaction(record, "old")
    await database.transaction(number_events)
    await database.value(_AGE_EVENTS)
    await database.value(_AGE_STREAM)
    page = await reader.read("", 1)
    before, between = str(int(page.next) - 1), page.next
    await database.transaction(record, "new")
    await database.transaction(number_events)
    assert await read_users(reader, before) == ["old", "new"]
    await delete_expired(database, changes_days=1)
    assert await read_users(reader) == ["new"]
    assert await read_users(reader, between) == ["new"]
    with pytest.raises(ExpiredCursor):
        await reader.read(before, 1)


@pytest.mark.parametrize("cursor", ["0", "1", "-1", "x", "9999999999999999", "1" * 17, "१" * 16, "1e15"])
async def test_cursor_that_was_never_issued_is_unknown(database: Database, cursor: str) -> None:
    with pytest.raises((UnknownCursor, ExpiredCursor)):
        await reader_of(database).read(cursor, 1)


async def test_topics_of_transactions_reach_all_workers_except_that_of_pending_events(services: Services) -> None:
    async def work(tx: Transaction, topic: str) -> None:
        tx.publish_after_commit(topic)

    async with trio.open_nursery() as nursery:
        await nursery.start(services.change_sequencer.run)
        waiting = services.bus.waiting  # for other workers; the bus of this process is not connected
        await services.database.transaction(work, PENDING_TOPIC)
        assert services.bus.waiting == waiting
        await services.database.transaction(work, "poll:1")
        assert services.bus.waiting == waiting + 1
        nursery.cancel_scope.cancel()
