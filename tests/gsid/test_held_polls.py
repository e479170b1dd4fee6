"""The scan that wakes held polls whose notification was lost."""

import pytest
import trio
from structlog.testing import capture_logs

from sso.gsid.model import Poll
from sso.services import Services
from tests.kit.polls import new_session


async def test_unreadable_session_does_not_keep_other_polls_from_being_woken(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_polls, store = services.game_login.held_polls, services.game_login.polls._store
    polls: list[Poll] = []
    for _ in range(5):
        poll = await store.start(await new_session(services))
        assert poll is not None
        polls.append(poll)
        held_polls.add(poll)
    find_changed = store.find_changed

    async def fail_for_one(scanned: list[Poll]) -> list[str]:
        if polls[2] in scanned:
            raise ValueError("cannot convert infinity to bigint")
        return await find_changed(scanned)

    monkeypatch.setattr(store, "find_changed", fail_for_one)
    await services.database.run_sql("UPDATE game_sessions SET status = 'closed' WHERE gsid = $1", [polls[4].gsid])
    woken: list[str] = []
    done = trio.Event()

    def wake(topic: str) -> None:
        woken.append(topic)
        if len(woken) == 2:
            done.set()

    monkeypatch.setattr(services.bus, "signal", wake)
    with capture_logs() as logs, trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(held_polls.run)
            services.bus.rescan()
            await done.wait()
            nursery.cancel_scope.cancel()
    assert set(woken) == {f"poll:{polls[2].gsid}", f"poll:{polls[4].gsid}"}
    assert [(entry["event"], entry["gsid"]) for entry in logs] == [("gsid.session_scan_failed", polls[2].gsid)]
