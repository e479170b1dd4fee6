"""The heartbeat of all sockets of a worker."""

import uuid
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from sso.core.ids import record_id
from sso.db.database import Database
from sso.gsid import socket_registry
from sso.gsid.socket_registry import FAILED, SocketClient, SocketClose, SocketRegistry
from sso.gsid.socket_store import SocketSession
from sso.services import Services
from tests.gsid.test_poll_store import new_session

SOCKETS = 3 * socket_registry.MAX_BATCH
_INSERT = """INSERT INTO game_sessions (gsid, location, match, address, socket, ends, expires)
    SELECT gsid, '', '', '192.0.2.1', 's' || gsid, now() + interval '1 h', now() + interval '1 h'
    FROM unnest($1::text[]) AS item (gsid)"""
# Reading this row fails, because infinity is no bigint.
_MAKE_UNREADABLE = "UPDATE game_sessions SET created = 'infinity' WHERE gsid = $1"


async def connected_clients(database: Database, count: int) -> list[SocketClient]:
    gsids = [str(uuid.uuid4()) for _ in range(count)]
    await database.run_sql(_INSERT, [gsids])
    return [SocketClient(gsid, f"s{gsid}") for gsid in gsids]


def queued_events(client: SocketClient) -> list[Any]:
    events = []
    while True:
        try:
            events.append(client.events.receive_nowait())
        except trio.WouldBlock:
            return events


async def test_heartbeat_reaches_the_sockets_of_all_batches(services: Services, database: Database) -> None:
    clients = await connected_clients(database, SOCKETS)
    registry = SocketRegistry(services.game_login.socket_store, 1)
    with ExitStack() as registrations:
        for client in clients:
            registrations.enter_context(registry.registered(client))
        await registry._heartbeat()
    for client in clients:
        assert [event["event"] for event in queued_events(client)] == ["refresh"]


async def test_heartbeat_repeats(services: Services, database: Database) -> None:
    (client,) = await connected_clients(database, 1)
    registry = SocketRegistry(services.game_login.socket_store, 0)
    with registry.registered(client), trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await nursery.start(registry.run)
            for _ in range(3):
                event = await client.events.receive()
                assert isinstance(event, dict)
                assert event["event"] == "refresh"
            nursery.cancel_scope.cancel()


async def test_heartbeat_continues_when_clients_disconnect_meanwhile(
    services: Services, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_registry, "MAX_BATCH", 1)
    clients = await connected_clients(database, 3)
    store = services.game_login.socket_store
    registry = SocketRegistry(store, 1)
    seen: list[str] = []
    heartbeat = store.heartbeat

    async def disconnect_all_others(sockets: Iterable[tuple[str, str]]) -> dict[str, SocketSession]:
        (current,) = sockets
        if not seen:
            for client in clients:
                if client.gsid != current[0]:
                    await store.cancel(client.gsid, client.socket_id)
                    client.__exit__()
        seen.append(current[0])
        return await heartbeat([current])

    monkeypatch.setattr(store, "heartbeat", disconnect_all_others)
    with ExitStack() as registrations:
        for client in clients:
            registrations.enter_context(registry.registered(client))
        await registry._heartbeat()
    assert sorted(seen) == sorted(client.gsid for client in clients)
    (remaining,) = (client for client in clients if client.gsid == seen[0])
    event = remaining.events.receive_nowait()
    assert isinstance(event, dict)
    assert event["event"] == "refresh"


async def test_unreadable_session_closes_only_its_own_socket(services: Services) -> None:
    registry = services.game_login.socket_registry
    clients = [SocketClient(await new_session(services), record_id()) for _ in range(9)]
    for client in clients:
        await services.game_login.socket_store.attach(client.gsid, client.socket_id)
    await services.database.run_sql(_MAKE_UNREADABLE, [clients[4].gsid])
    with capture_logs() as logs, ExitStack() as registrations:
        for client in clients:
            registrations.enter_context(registry.registered(client))
        await registry._heartbeat()
    assert [(entry["event"], entry["gsid"]) for entry in logs] == [("gsid.session_heartbeat_failed", clients[4].gsid)]
    assert queued_events(clients.pop(4)) == [SocketClose(FAILED, "internal error")]
    for client in clients:
        assert [event["event"] for event in queued_events(client)] == ["refresh"]


async def test_heartbeat_returns_the_current_socket_to_a_replaced_one(services: Services) -> None:
    """A replaced socket notices it by the heartbeat, even if the notification was lost."""
    store, gsid = services.game_login.socket_store, await new_session(services)
    for socket_id in ("older", "newer"):
        assert await store.attach(gsid, socket_id)
    sessions = await store.heartbeat([(gsid, "older"), (gsid, "newer")])
    assert {socket_id: session.socket_id for socket_id, session in sessions.items()} == {
        "older": "newer",
        "newer": "newer",
    }
