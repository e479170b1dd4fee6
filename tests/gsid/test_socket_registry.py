"""The heartbeat of all sockets of a worker."""

import uuid
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from sso.core.ids import record_id
from sso.db.database import Database
from sso.gsid import socket_registry
from sso.gsid.rate_limit import AddressKeys
from sso.gsid.socket_registry import FAILED, SocketClient, SocketClose, SocketRegistry
from sso.gsid.socket_store import ConnectedSocket, SocketHeartbeat
from sso.services import Services
from tests.kit.polls import new_session

_INSERT = """INSERT INTO game_sessions (gsid, location, match, address, socket, ends, expires)
    SELECT gsid, '', '', '192.0.2.1', 's' || gsid, now() + interval '1 h', now() + interval '1 h'
    FROM unnest($1::text[]) AS item (gsid)"""
_MAKE_DEVICE = """WITH client AS (
        INSERT INTO oauth_clients (client_id, name) VALUES ('tv', 'TV') RETURNING client_id
    ) UPDATE game_sessions SET client_id = client.client_id FROM client WHERE gsid = $1"""
# Reading this row fails, because infinity is no bigint. It is read because its stage has changed.
_MAKE_UNREADABLE = "UPDATE game_sessions SET created = 'infinity', stage = 'opened' WHERE gsid = $1"


async def connected_clients(database: Database, count: int) -> list[SocketClient]:
    gsids = [str(uuid.uuid4()) for _ in range(count)]
    await database.run_sql(_INSERT, [gsids])
    return [new_client(gsid, f"s{gsid}") for gsid in gsids]


def new_client(gsid: str, socket_id: str) -> SocketClient:
    return SocketClient(gsid, socket_id)


def names(events: list[Any]) -> list[str]:
    return [event["event"] for event in events]


async def test_heartbeat_reaches_the_sockets_of_all_batches(
    services: Services, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_registry, "MAX_BATCH", 100)
    clients = await connected_clients(database, 300)
    registry = SocketRegistry(services.game_login.socket_store, 1)
    for client in clients:
        registry.add(client)
    await registry._heartbeat()
    for client in clients:
        assert names(client.take_queued()) == ["refresh"]


async def test_heartbeat_of_many_sockets_leaves_the_event_loop_to_others(
    services: Services, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent_in_this_turn, most = 0, 0

    def send(client: SocketClient, event: object) -> None:
        nonlocal sent_in_this_turn, most
        sent_in_this_turn += 1
        most = max(most, sent_in_this_turn)

    async def count_turns() -> None:
        nonlocal sent_in_this_turn
        while True:
            sent_in_this_turn = 0
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(SocketClient, "send", send)
    registry = SocketRegistry(services.game_login.socket_store, 1)
    for client in await connected_clients(database, 450):
        registry.add(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        await registry._heartbeat()
        nursery.cancel_scope.cancel()
    # The other task may have had its turn before or after this one.
    assert most <= 2 * socket_registry.MAX_SENT_PER_TURN


async def test_heartbeat_repeats(services: Services, database: Database) -> None:
    (client,) = await connected_clients(database, 1)
    registry = SocketRegistry(services.game_login.socket_store, 0)
    registry.add(client)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(registry.run)
            events: list[Any] = []
            while len(events) < 3:
                await trio.sleep(0.01)
                events += client.take_queued()
            nursery.cancel_scope.cancel()
    assert set(names(events)) == {"refresh"}


async def test_heartbeat_continues_when_clients_disconnect_meanwhile(
    services: Services, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_registry, "MAX_BATCH", 1)
    clients = await connected_clients(database, 3)
    store = services.game_login.socket_store
    registry = SocketRegistry(store, 1)
    seen: list[str] = []
    heartbeat = store.heartbeat

    async def disconnect_all_others(sockets: Sequence[ConnectedSocket]) -> SocketHeartbeat:
        (current,) = sockets
        if not seen:
            for client in clients:
                if client.gsid != current.gsid:
                    await store.cancel(client.gsid, client.socket_id)
                    client.closing = True
        seen.append(current.gsid)
        return await heartbeat([current])

    monkeypatch.setattr(store, "heartbeat", disconnect_all_others)
    for client in clients:
        registry.add(client)
    await registry._heartbeat()
    assert sorted(seen) == sorted(client.gsid for client in clients)
    (remaining,) = (client for client in clients if client.gsid == seen[0])
    assert names(remaining.take_queued()) == ["refresh"]


async def test_unreadable_session_closes_only_its_own_socket(services: Services) -> None:
    registry = services.game_login.socket_registry
    clients = [new_client(await new_session(services), record_id()) for _ in range(9)]
    for client in clients:
        await services.game_login.socket_store.attach(client.gsid, client.socket_id)
    await services.database.run_sql(_MAKE_UNREADABLE, [clients[4].gsid])
    with capture_logs() as logs:
        for client in clients:
            registry.add(client)
        await registry._heartbeat()
    assert [(entry["event"], entry["gsid"]) for entry in logs] == [("gsid.session_heartbeat_failed", clients[4].gsid)]
    assert clients.pop(4).take_queued() == [SocketClose(FAILED, "internal error")]
    for client in clients:
        assert names(client.take_queued()) == ["refresh"]


async def test_heartbeat_returns_the_current_socket_to_a_replaced_one(services: Services) -> None:
    """A replaced socket notices it by the heartbeat, even if the notification was lost."""
    store, gsid = services.game_login.socket_store, await new_session(services)
    for socket_id in ("older", "newer"):
        assert await store.attach(gsid, socket_id)
    heartbeat = await store.heartbeat([new_client(gsid, "older"), new_client(gsid, "newer")])
    ((socket_id, session),) = heartbeat.changed.items()
    assert session is not None
    assert (socket_id, session.socket_id) == ("older", "newer")


async def test_heartbeat_reports_new_stages_ended_and_missing_sessions(services: Services) -> None:
    store = services.game_login.socket_store
    same, staged, ended, missing = [await new_session(services) for _ in range(4)]
    for gsid in (same, staged, ended):
        assert await store.attach(gsid, f"s{gsid}")
    await services.game_login.confirmation.set_stage(staged, "opened")
    await services.database.run_sql("UPDATE game_sessions SET ends = now() WHERE gsid = $1", [ended])
    await services.database.run_sql("DELETE FROM game_sessions WHERE gsid = $1", [missing])
    heartbeat = await store.heartbeat([new_client(gsid, f"s{gsid}") for gsid in (same, staged, ended, missing)])
    assert heartbeat.changed.keys() == {f"s{gsid}" for gsid in (staged, ended, missing)}
    assert heartbeat.changed[f"s{missing}"] is None
    rows = await services.database.run_sql("SELECT extract(epoch FROM last_seen)::int FROM game_sessions", [])
    assert len(rows) == 3
    assert heartbeat.ts - min(row[0] for row in rows) <= 60


async def test_last_of_several_sockets_attached_at_once_is_current(services: Services) -> None:
    store, gsid = services.game_login.socket_store, await new_session(services)
    attached: dict[str, Any] = {}

    async def attach(socket_id: str) -> None:
        attached[socket_id] = await store.attach(gsid, socket_id)

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(attach, f"s{number}")
    (row,) = await services.database.run_sql("SELECT socket FROM game_sessions WHERE gsid = $1", [gsid])
    assert len(attached) == 5
    assert row[0] in attached
    assert attached[row[0]].socket_id == row[0]


async def test_socket_is_attached_if_the_address_of_its_session_suffices(
    services: Services, database: Database
) -> None:
    store = services.game_login.socket_store
    for case in ("another address", "a device", "ended", "unknown", "sufficient", "blocked"):
        gsid = await new_session(services)
        address = "192.0.2.2" if case == "another address" else "192.0.2.1"
        early_poll_key = AddressKeys.of(ip_address(address)).early_polls
        if case == "blocked":
            for _ in range(services.settings.poll_strikes):
                await services.game_login.rate_limiter.count_early_poll(early_poll_key, gsid)
        elif case == "a device":
            await database.run_sql(_MAKE_DEVICE, [gsid])
        elif case == "ended":
            await database.run_sql("UPDATE game_sessions SET ends = now() WHERE gsid = $1", [gsid])
        attached = await store.attach("unknown" if case == "unknown" else gsid, "socket", address, early_poll_key)
        (row,) = await database.run_sql("SELECT socket, last_seen FROM game_sessions WHERE gsid = $1", [gsid])
        if case == "sufficient":
            assert attached
            assert row["socket"] == "socket"
        else:
            assert attached is None, case
            assert tuple(row) == (None, None), case


async def test_client_that_does_not_read_gets_no_more_than_a_few_queued_events() -> None:
    client = new_client("gsid", "socket")
    for ts in range(socket_registry.MAX_QUEUED_EVENTS + 5):
        client.send_heartbeat(ts)
    client.send(SocketClose(FAILED))
    client.send_heartbeat(0)
    events = client.take_queued()
    assert len(events) == socket_registry.MAX_QUEUED_EVENTS + 1
    assert events[-1] == SocketClose(FAILED)


@pytest.mark.parametrize("cause", ["event", "signal"])
async def test_client_is_woken_while_it_reads_or_the_next_time_it_does(autojump_clock: Any, cause: str) -> None:
    client = new_client("gsid", "socket")

    def wake() -> None:
        if cause == "event":
            client.send_heartbeat(1)
        else:
            client.signal()

    wake()  # before it reads
    with trio.fail_after(1):
        await client.read_until_woken(trio.sleep_forever)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.read_until_woken, trio.sleep_forever)
        await trio.testing.wait_all_tasks_blocked()
        wake()
    assert client.session_changed is (cause == "signal")
    with trio.move_on_after(1) as reading:  # it was woken once for each cause, and not again
        await client.read_until_woken(trio.sleep_forever)
    assert reading.cancelled_caught
