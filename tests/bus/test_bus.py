"""What both buses do: messages reach the worker that they are for, are merged, and follow a commit."""

import pytest
import trio
import trio.lowlevel

from sso.bus import outgoing
from sso.bus.bus import Bus
from sso.bus.check import measure_message
from sso.bus.subscriptions import Rescans
from sso.bus.wiring import build_bus
from sso.config import Settings
from sso.db.database import Database
from tests.bus import TIMEOUT_S, is_empty, received, running_bus


async def test_message_signals_only_the_subscribers_of_its_topic(sender: Bus, receiver: Bus) -> None:
    with receiver.subscribe("mine") as mine, receiver.subscribe("other") as other:
        sender.publish("mine")
        await received(mine)
        assert is_empty(other)


async def test_message_to_one_worker_does_not_reach_others(
    sender: Bus, receiver: Bus, database: Database, bus_settings: Settings
) -> None:
    async with running_bus(database, bus_settings) as other:
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


async def test_storm_of_messages_arrives_completely_and_lets_other_tasks_run(
    sender: Bus, receiver: Bus, database: Database, bus_settings: Settings
) -> None:
    """Topics for three hundred workers, of which two exist."""
    workers = [f"{number:016x}" for number in range(300)]
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with running_bus(database, bus_settings) as other, trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        with receiver.subscribe("topic 99") as signals, other.subscribe("topic 99") as others_signals:
            for number in range(100):
                for worker in (*workers, receiver.worker, other.worker):
                    sender.publish(f"topic {number}", worker)
            await received(signals)
            await received(others_signals)
        nursery.cancel_scope.cancel()
    assert turns >= 2
    assert sender.dropped == 0


async def test_topics_beyond_the_limit_are_dropped_and_counted(
    database: Database, bus_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "MAX_WAITING", 10)
    bus = build_bus(database, bus_settings)
    for number in range(15):
        bus.publish(f"topic {number}")
    assert (bus.waiting, bus.dropped) == (10, 5)
    await bus.send_once()
    assert bus.waiting == 0


async def test_rare_rescan_is_rare_while_the_bus_is_connected(
    database: Database, bus_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.bus.bus.RESCAN_S", 0.05)
    async with running_bus(database, bus_settings) as bus:
        with bus.subscribe("a") as often, bus.subscribe("b", Rescans.RARELY) as rarely:
            await received(often)
            await received(often)
            assert is_empty(rarely)


async def test_command_sends_its_messages_without_a_running_bus(
    receiver: Bus, database: Database, bus_settings: Settings
) -> None:
    command = build_bus(database, bus_settings)
    with receiver.subscribe("mine") as mine:
        command.publish("mine")
        with trio.fail_after(TIMEOUT_S):
            await command.send_once()
        await received(mine)


async def test_doctor_measures_a_message(dsn: str, bus_settings: Settings) -> None:
    assert 0 < await measure_message(bus_settings, dsn) < TIMEOUT_S
