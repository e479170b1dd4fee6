"""A game session whose row cannot be read fails alone: the sockets and polls of others go on."""

from typing import Any

import trio
from structlog.testing import capture_logs

from sso.gsid.model import Poll
from sso.gsid.socket_registry import FAILED, SocketClient, SocketClose
from sso.services import Services
from tests.gsid.test_claims import new_session

POISON = "UPDATE game_sessions SET created = 'infinity' WHERE gsid = $1"


def events(line: SocketClient) -> list[Any]:
    found = []
    while True:
        try:
            found.append(line.events.receive_nowait())
        except trio.WouldBlock:
            return found


async def test_heartbeat_goes_on_for_the_sockets_of_other_sessions(services: Services) -> None:
    heartbeats = services.game.socket_registry
    lines = [SocketClient(await new_session(services)) for _ in range(9)]
    for line in lines:
        await services.game.socket_store.attach(line.gsid, line.socket_id)
    await services.database.run_sql(POISON, [lines[4].gsid])
    with capture_logs() as logs:
        for line in lines:
            heartbeats._clients.add(line)
        await heartbeats._heartbeat()
    assert [(entry["event"], entry["gsid"]) for entry in logs] == [("gsid.session_heartbeat_failed", lines[4].gsid)]
    assert events(lines.pop(4)) == [SocketClose(FAILED, "internal error")]
    for line in lines:
        assert [event["event"] for event in events(line)] == ["refresh"]


async def test_held_polls_of_other_sessions_are_woken(services: Services, monkeypatch: Any) -> None:
    holds, store = services.game.held_polls, services.game.held_polls._store
    turns: list[Poll] = []
    for _ in range(5):
        turn = await store.start(await new_session(services))
        assert turn is not None
        turns.append(turn)
        holds.add(turn)
    real = store.find_changed

    async def changed(held: list[Poll]) -> list[str]:
        if turns[2] in held:
            raise ValueError("cannot convert infinity to bigint")
        return await real(held)

    monkeypatch.setattr(store, "find_changed", changed)
    await services.database.run_sql("UPDATE game_sessions SET status = 'closed' WHERE gsid = $1", [turns[4].gsid])
    woken: list[str] = []
    monkeypatch.setattr(services.notifications, "signal", woken.append)
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await nursery.start(holds.run)
            services.notifications.rescan()
            with trio.fail_after(10):
                while len(woken) < 2:  # noqa: ASYNC110 - nothing else tells
                    await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
    assert set(woken) == {f"poll:{turns[2].gsid}", f"poll:{turns[4].gsid}"}
    assert [(entry["event"], entry["gsid"]) for entry in logs] == [("gsid.session_scan_failed", turns[2].gsid)]
