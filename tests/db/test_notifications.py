"""Notifications signal the subscribers of their topic, and a lost connection loses no signal."""

import pytest
import trio

from sso.db.database import Database
from sso.db.notifications import Notifications, notify
from sso.db.statement import Statement
from sso.db.transaction import Transaction

TIMEOUT_S = 20  # generous, for slow machines
TERMINATE_LISTENER = Statement(
    """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%' OR query = 'SELECT 1' AND pid <> pg_backend_pid()"""
)


@pytest.fixture(autouse=True)
def no_rescan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only notifications signal, not the regular rescan."""
    monkeypatch.setattr("sso.db.notifications.RESCAN_S", 3600.0)


async def test_notification_signals_only_the_subscribers_of_its_topic(
    database: Database, nursery: trio.Nursery
) -> None:
    notifications = Notifications(database)
    await nursery.start(notifications.run)
    await notifications.connected.wait()
    with notifications.subscribe("mine") as mine, notifications.subscribe("other") as other:
        await notify(database, "mine")
        with trio.fail_after(TIMEOUT_S):
            await mine.receive()
        with pytest.raises(trio.WouldBlock):
            other.receive_nowait()


async def test_many_notifications_are_merged_into_one_signal(database: Database, nursery: trio.Nursery) -> None:
    notifications = Notifications(database)
    await nursery.start(notifications.run)
    await notifications.connected.wait()
    with notifications.subscribe("mine") as mine, notifications.subscribe("last") as last:
        for _ in range(20):
            await notify(database, "mine")
        await notify(database, "last")
        with trio.fail_after(TIMEOUT_S):
            await last.receive()
        mine.receive_nowait()
        with pytest.raises(trio.WouldBlock):
            mine.receive_nowait()


async def test_notification_of_a_rolled_back_transaction_is_not_sent(database: Database, nursery: trio.Nursery) -> None:
    notifications = Notifications(database)
    await nursery.start(notifications.run)
    await notifications.connected.wait()

    async def notify_and_fail(tx: Transaction) -> None:
        await notify(tx, "mine")
        raise ValueError

    with notifications.subscribe("mine") as mine, notifications.subscribe("last") as last:
        with pytest.raises(ValueError):
            await database.transaction(notify_and_fail)
        await notify(database, "last")
        with trio.fail_after(TIMEOUT_S):
            await last.receive()
        with pytest.raises(trio.WouldBlock):
            mine.receive_nowait()


async def test_lost_connection_is_reopened_and_signals_all_subscribers(
    database: Database, nursery: trio.Nursery
) -> None:
    notifications = Notifications(database)
    await nursery.start(notifications.run)
    await notifications.connected.wait()
    with notifications.subscribe("anything") as signals:
        assert await database.value(TERMINATE_LISTENER) >= 1
        with trio.fail_after(TIMEOUT_S):
            await signals.receive()
        await notifications.connected.wait()
        await notify(database, "anything")
        with trio.fail_after(TIMEOUT_S):
            await signals.receive()


async def test_rescan_signals_without_a_connection(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sso.db.notifications.RESCAN_S", 0.05)
    async with Database.open("postgresql://sso@127.0.0.1:1/none") as database:
        notifications = Notifications(database)
        await nursery.start(notifications.run)
        with notifications.subscribe("anything") as signals, trio.fail_after(TIMEOUT_S):
            await signals.receive()
        nursery.cancel_scope.cancel()
