import pytest
import trio

from sso.db.database import Database
from sso.db.notifications import Notifications, notify
from sso.db.statement import Statement
from sso.db.transaction import Transaction

PATIENCE_S = 20  # what must happen at all happens by then, also on a slow machine
TERMINATE_LISTENER = Statement(
    """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%' OR query = 'SELECT 1' AND pid <> pg_backend_pid()"""
)


@pytest.fixture(autouse=True)
def no_slow_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """It wakes everybody now and then; here only notifications do, however long one takes."""
    monkeypatch.setattr("sso.db.notifications.SCAN_S", 3600.0)


async def test_a_notification_wakes_who_watches_its_topic_only(database: Database, nursery: trio.Nursery) -> None:
    wakeups = Notifications(database)
    await nursery.start(wakeups.run)
    await wakeups.connected.wait()
    with wakeups.watch("mine") as mine, wakeups.watch("other") as other:
        await notify(database, "mine")
        with trio.fail_after(PATIENCE_S):
            await mine.receive()
        with pytest.raises(trio.WouldBlock):
            other.receive_nowait()


async def test_many_notifications_are_one_wake_up(database: Database, nursery: trio.Nursery) -> None:
    wakeups = Notifications(database)
    await nursery.start(wakeups.run)
    await wakeups.connected.wait()
    with wakeups.watch("mine") as mine, wakeups.watch("last") as last:
        for _ in range(20):
            await notify(database, "mine")
        await notify(database, "last")
        with trio.fail_after(PATIENCE_S):
            await last.receive()
        mine.receive_nowait()
        with pytest.raises(trio.WouldBlock):
            mine.receive_nowait()


async def test_nobody_is_woken_by_what_was_rolled_back(database: Database, nursery: trio.Nursery) -> None:
    wakeups = Notifications(database)
    await nursery.start(wakeups.run)
    await wakeups.connected.wait()

    async def work(tx: Transaction) -> None:
        await notify(tx, "mine")
        raise ValueError

    with wakeups.watch("mine") as mine, wakeups.watch("last") as last:
        with pytest.raises(ValueError):
            await database.transaction(work)
        await notify(database, "last")
        with trio.fail_after(PATIENCE_S):
            await last.receive()
        with pytest.raises(trio.WouldBlock):
            mine.receive_nowait()


async def test_a_lost_connection_comes_back_by_itself_and_wakes_everybody(
    database: Database, nursery: trio.Nursery
) -> None:
    wakeups = Notifications(database)
    await nursery.start(wakeups.run)
    await wakeups.connected.wait()
    with wakeups.watch("anything") as signals:
        assert await database.value(TERMINATE_LISTENER) >= 1
        with trio.fail_after(PATIENCE_S):
            await signals.receive()
        await wakeups.connected.wait()
        await notify(database, "anything")
        with trio.fail_after(PATIENCE_S):
            await signals.receive()


async def test_the_slow_scan_wakes_without_any_connection(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sso.db.notifications.SCAN_S", 0.2)
    async with Database.open("postgresql://sso@127.0.0.1:1/none") as database:
        wakeups = Notifications(database)
        await nursery.start(wakeups.run)
        with wakeups.watch("anything") as signals, trio.fail_after(PATIENCE_S):
            await signals.receive()
        nursery.cancel_scope.cancel()
