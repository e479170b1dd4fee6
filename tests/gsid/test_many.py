"""Thousands of sessions at once: each is found by its name, and no statement's cost grows with the square of them."""

import json
import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Any

import pytest
import trio

from sso.accounts.model import LoginOptions
from sso.db.database import Database
from sso.gsid import socket_registry as heartbeats_module
from sso.gsid.poll_store import _FIND_CHANGED
from sso.gsid.socket_registry import SocketClient, SocketRegistry
from sso.gsid.socket_store import _HEARTBEAT, SocketSession
from sso.services import Services

SOCKETS = 6000
_NEW = """INSERT INTO game_sessions (gsid, location, match, address, socket, ends, expires)
    SELECT gsid, '', '', '192.0.2.1', 's' || gsid, now() + interval '1 h', now() + interval '1 h'
    FROM unnest($1::text[]) AS item (gsid)"""


def steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from steps(part)


@pytest.mark.parametrize("rows", [0, 1, 2])
async def test_a_plan_made_while_there_is_nobody_looks_sessions_up_by_their_names(
    services: Services, database: Database, rows: int
) -> None:
    for _ in range(rows):
        await services.game.registration.register(LoginOptions(address=ip_address("192.0.2.1")), None)
    for table in ("game_sessions", "throttle", "users"):
        await database.run_sql(f"VACUUM ANALYZE {table}", [])
    polls, sessions, sockets = services.game.polls._store, services.game.sessions, services.game.socket_store
    batches = (sessions._find, polls._start, polls._claim, polls._set_retry_time, sockets._read)
    texts = [*(batch._statement.sql for batch in batches), _FIND_CHANGED.sql, _HEARTBEAT.sql]
    for sql in texts:
        count = max(int(number) for number in re.findall(r"\$(\d+)", sql))
        # As it is planned for whatever may be given.
        await database.run_sql(f"PREPARE planned AS {sql}", [])
        (row,) = await database.run_sql(f"EXPLAIN (FORMAT JSON) EXECUTE planned ({', '.join(['NULL'] * count)})", [])
        await database.run_sql("DEALLOCATE planned", [])
        looks = [
            step for step in steps(json.loads(row[0])[0]["Plan"])
            if "Relation Name" in step and step["Node Type"] != "ModifyTable"
        ]  # fmt: skip
        assert looks
        for look in looks:
            assert "Index Cond" in look or "Recheck Cond" in look, (sql, look)


async def test_all_sockets_of_a_worker_are_beaten(services: Services, database: Database) -> None:
    gsids = [str(uuid.uuid4()) for _ in range(SOCKETS)]
    await database.run_sql(_NEW, [gsids])
    heartbeats, lines = (
        SocketRegistry(services.game.socket_store, 1),
        [SocketClient(gsid, f"s{gsid}") for gsid in gsids],
    )
    with ExitStack() as sockets, trio.fail_after(20):
        for line in lines:
            sockets.enter_context(heartbeats.registered(line))
        async with trio.open_nursery() as nursery:
            await nursery.start(heartbeats.run)
            events = [await line.events.receive() for line in lines]
            nursery.cancel_scope.cancel()
    assert [event for event in events if not isinstance(event, dict) or event["event"] != "refresh"] == []


async def test_a_client_that_leaves_during_a_beat_harms_nobody(
    services: Services, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats_module, "MAX_BATCH", 1)
    gsids = [str(uuid.uuid4()) for _ in range(3)]
    await database.run_sql(_NEW, [gsids])
    store = services.game.socket_store
    heartbeats, lines = SocketRegistry(store, 1), [SocketClient(gsid, f"s{gsid}") for gsid in gsids]
    beaten: list[str] = []
    beat = store.heartbeat

    async def leave_all_others(sockets: Iterable[tuple[str, str]]) -> dict[str, SocketSession]:
        (present,) = sockets
        if not beaten:
            for line in lines:
                if line.gsid != present[0]:
                    await store.cancel(line.gsid, line.socket_id)
                    line.__exit__()
        beaten.append(present[0])
        return await beat([present])

    monkeypatch.setattr(store, "heartbeat", leave_all_others)
    with ExitStack() as sockets:
        for line in lines:
            sockets.enter_context(heartbeats.registered(line))
        await heartbeats._heartbeat()
    assert sorted(beaten) == sorted(gsids)
    (present,) = (line for line in lines if line.gsid == beaten[0])
    event = present.events.receive_nowait()
    assert isinstance(event, dict)
    assert event["event"] == "refresh"
