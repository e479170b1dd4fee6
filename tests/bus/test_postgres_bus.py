"""The bus over PostgreSQL: messages reach the worker they are for, and a lost connection loses no signal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.bus.wiring import build_bus
from sso.db.database import Database
from sso.db.statement import Statement

TIMEOUT_S = 20  # generous, for slow machines
TERMINATE_LISTENERS = Statement(
    """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'sso bus'"""
)


@pytest.fixture(autouse=True)
def no_rescan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only messages signal, not the regular rescan."""
    monkeypatch.setattr("sso.bus.bus.RESCAN_S", 3600.0)


@asynccontextmanager
async def running(database: Database) -> AsyncIterator[Bus]:
    bus = build_bus(database)
    async with trio.open_nursery() as nursery:
        await nursery.start(bus.run)
        await bus.connected.wait()
        yield bus
        nursery.cancel_scope.cancel()


@pytest.fixture
async def sender(database: Database) -> AsyncIterator[Bus]:
    async with running(database) as bus:
        yield bus


@pytest.fixture
async def receiver(database: Database) -> AsyncIterator[Bus]:
    async with running(database) as bus:
        yield bus


async def received(signals: trio.MemoryReceiveChannel[None]) -> None:
    with trio.fail_after(TIMEOUT_S):
        await signals.receive()


def is_empty(signals: trio.MemoryReceiveChannel[None]) -> bool:
    return signals.statistics().current_buffer_used == 0


async def test_message_signals_only_the_subscribers_of_its_topic(sender: Bus, receiver: Bus) -> None:
    with receiver.subscribe("mine") as mine, receiver.subscribe("other") as other:
        sender.publish("mine")
        await received(mine)
        assert is_empty(other)


async def test_message_to_one_worker_does_not_reach_others(sender: Bus, receiver: Bus, database: Database) -> None:
    async with running(database) as other:
        with receiver.subscribe("mine") as mine, other.subscribe("mine") as not_mine, other.subscribe("last") as last:
            sender.publish("mine", receiver.worker)
            sender.publish("last")
            await received(mine)
            await received(last)
            assert is_empty(not_mine)


async def test_subscribers_in_the_same_process_are_signalled_at_once_and_once(sender: Bus, receiver: Bus) -> None:
    with sender.subscribe("mine") as own, sender.subscribe("last") as last, receiver.subscribe("mine") as remote:
        sender.publish("mine")
        own.receive_nowait()
        await received(remote)
        receiver.publish("last")
        await received(last)
        assert is_empty(own)


async def test_message_to_the_same_process_is_not_sent(sender: Bus) -> None:
    with sender.subscribe("mine") as own:
        sender.publish("mine", sender.worker)
        own.receive_nowait()
    await sender.wait_until_sent()
    assert sender.sent == 0


async def test_topics_of_a_burst_share_messages(sender: Bus, receiver: Bus) -> None:
    with receiver.subscribe("topic 999") as last:
        for number in range(1000):
            sender.publish(f"topic {number}", receiver.worker)
        await received(last)
    await sender.wait_until_sent()
    assert sender.sent == receiver.received <= 10


async def test_many_messages_are_merged_into_one_signal(sender: Bus, receiver: Bus) -> None:
    with receiver.subscribe("mine") as mine, receiver.subscribe("last") as last:
        for _ in range(20):
            sender.publish("mine")
            await sender.wait_until_sent()
        sender.publish("last")
        await received(last)
        mine.receive_nowait()
        assert is_empty(mine)


async def test_lost_connection_is_reopened_and_signals_all_subscribers(receiver: Bus, database: Database) -> None:
    with receiver.subscribe("anything") as signals, receiver.subscribe("alone", Rescans.NEVER) as alone:
        assert await database.value(TERMINATE_LISTENERS) >= 1
        await received(signals)  # the connection is lost
        with trio.fail_after(TIMEOUT_S):
            await receiver.connected.wait()
        await received(signals)  # it is back
        assert is_empty(alone)


async def test_topics_published_without_a_connection_are_sent_later(
    sender: Bus, receiver: Bus, database: Database
) -> None:
    assert await database.value(TERMINATE_LISTENERS) >= 2
    with trio.fail_after(TIMEOUT_S):
        while sender.connected.is_set() or receiver.connected.is_set():  # noqa: ASYNC110 - an event is replaced
            await trio.sleep(0.001)
        with receiver.subscribe("mine", Rescans.NEVER) as mine:
            await receiver.connected.wait()
            sender.publish("mine")
            await received(mine)


async def test_rescan_signals_without_a_connection(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sso.bus.bus.RESCAN_S", 0.05)
    async with Database.open("postgresql://sso@127.0.0.1:1/none") as database:
        bus = build_bus(database)
        await nursery.start(bus.run)
        with bus.subscribe("anything", Rescans.RARELY) as signals:
            await received(signals)
            await received(signals)
        nursery.cancel_scope.cancel()


async def test_rare_rescan_is_rare_while_the_bus_is_connected(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.bus.bus.RESCAN_S", 0.05)
    async with running(database) as bus:
        with bus.subscribe("a") as often, bus.subscribe("b", Rescans.RARELY) as rarely:
            await received(often)
            await received(often)
            assert is_empty(rarely)


async def test_command_sends_its_messages_without_a_running_bus(receiver: Bus, database: Database) -> None:
    command = build_bus(database)
    with receiver.subscribe("mine") as mine:
        command.publish("mine")
        with trio.fail_after(TIMEOUT_S):
            await command.send_once()
        await received(mine)


async def test_messages_of_the_previous_release_are_understood(receiver: Bus, database: Database) -> None:
    with receiver.subscribe("poll:1") as poll, receiver.subscribe("socket:1") as socket:
        await database.run_sql("SELECT pg_notify('sso', E'poll:1\\nsocket:1')", [])
        await received(poll)
        await received(socket)


@pytest.mark.parametrize("payload", ["", "\n\n", "no such topic", "\u2603\n" * 1000, "x" * 7999])
async def test_unknown_payload_is_ignored(receiver: Bus, database: Database, payload: str) -> None:
    with receiver.subscribe("mine") as mine:
        await database.run_sql("SELECT pg_notify('sso', $1)", [payload])
        await database.run_sql("SELECT pg_notify('sso', 'mine')", [])
        await received(mine)
