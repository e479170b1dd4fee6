"""The bus over PostgreSQL: a lost connection loses no signal, and the previous release is understood."""

import pytest
import trio

from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.bus.wiring import build_bus
from sso.config import Settings
from sso.db.database import Database
from sso.db.statement import Statement
from tests.bus import is_empty, received, until_connected, until_disconnected

TERMINATE_LISTENERS = Statement(
    """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'sso bus'"""
)


@pytest.fixture
def bus_settings(settings: Settings) -> Settings:
    return settings


async def test_lost_connection_is_reopened_and_signals_all_subscribers(receiver: Bus, database: Database) -> None:
    with receiver.subscribe("anything") as signals, receiver.subscribe("alone", Rescans.NEVER) as alone:
        assert await database.value(TERMINATE_LISTENERS) >= 1
        await received(signals)  # the connection is lost
        await until_connected(receiver)
        await received(signals)  # it is back
        assert is_empty(alone)


async def test_topics_published_without_a_connection_are_sent_later(
    sender: Bus, receiver: Bus, database: Database
) -> None:
    assert await database.value(TERMINATE_LISTENERS) >= 2
    await until_disconnected(receiver)
    await until_connected(receiver)
    with receiver.subscribe("mine", Rescans.NEVER) as mine:
        sender.publish("mine", receiver.worker)  # connected again or not
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
