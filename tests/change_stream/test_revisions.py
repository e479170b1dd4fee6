"""How long a request waits for a revision, and what ends the wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
import trio.testing

from sso.bus.wiring import build_bus
from sso.change_stream import revisions as revisions_module
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.change_stream.revisions import RevisionNotReached, Revisions
from sso.change_stream.store import number_events
from sso.db.database import Database
from sso.perm import question_facts
from sso.perm.question_facts import QuestionFacts


async def test_a_revision_is_reached_when_an_event_gets_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions_module, "MAX_WAIT_S", 60.0)
    bus = build_bus(database)
    revisions = Revisions(database, bus)
    await revisions.read()  # this opens a connection
    first = await revisions.read()
    assert revisions.is_reached(first)
    assert not revisions.is_reached(first + 1)
    reached = trio.Event()
    held = []

    @contextmanager
    def hold() -> Iterator[None]:
        held.append(True)
        yield
        held.append(False)

    async def wait() -> None:
        await revisions.wait(first + 1, hold)
        reached.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert not reached.is_set()
        assert held == [True], "while it waits, the request is no load"
        await database.transaction(record_changes, [Change(ChangeType.USER_DISABLED, "ann")])
        await database.transaction(number_events)
        bus.signal("changes")
        with trio.fail_after(60):
            await reached.wait()
    assert revisions.is_reached(first + 1)
    assert not held[-1]


async def test_a_revision_that_is_not_reached_in_time_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revisions_module, "MAX_WAIT_S", 0.05)
    revisions = Revisions(database, build_bus(database))
    with pytest.raises(RevisionNotReached) as refused:
        await revisions.wait(9_999_999_999_999_999)
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})


async def test_question_that_waits_for_a_revision_is_held(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []

    @contextmanager
    def hold() -> Iterator[None]:
        held.append(True)
        yield

    monkeypatch.setattr(revisions_module, "MAX_WAIT_S", 0.05)
    monkeypatch.setattr(question_facts, "hold_request", hold)
    facts: Any = None
    with pytest.raises(RevisionNotReached):
        await QuestionFacts(facts, Revisions(database, build_bus(database))).open(None, 9_999_999_999_999_999)
    assert held == [True]


async def test_a_known_revision_counts_no_longer_on_new_connections(database: Database) -> None:
    """After a failover, the new server may lack what the old one had."""
    revisions = Revisions(database, build_bus(database))
    first = await revisions.read()
    database.epoch += 1
    assert not revisions.is_reached(first)
    await revisions.wait(first)
    assert revisions.is_reached(first)
