"""Schemas and roles of the past are compiled once, in a thread if they are large, and one at a time for each caller."""

import threading
import time
from datetime import datetime
from typing import Any

import pytest
import trio

from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.stores import compilation, past_applications
from sso.perm.stores.facts import StoredFacts

SETUP = (
    "INSERT INTO users (user_id, login, login_key) VALUES ('1', 'ann@x.org', 'ann@x.org')",
    "INSERT INTO applications (application_id, name) OVERRIDING SYSTEM VALUE VALUES (10, 'ten')",
    """INSERT INTO roles (application_id, name, meta)
    SELECT 10, 'r' || n, jsonb_build_object('x', repeat('x', 100)) FROM generate_series(1, 400) AS n""",
    "UPDATE permission_history SET since = now() - interval '2 days'",
    "UPDATE permission_commits SET at = now() - interval '1 day'",
)
CHANGE = Statement(
    """WITH role AS (UPDATE roles SET description = :description WHERE application_id = 10 AND name = 'r1')
    UPDATE applications SET revision = revision + 1 WHERE application_id = 10"""
)
SET_TIME = Statement(
    "UPDATE permission_commits SET at = :at WHERE id = (SELECT max(commit_id) FROM permission_versions)"
)
NOW = Statement("SELECT CAST(floor(extract(epoch FROM clock_timestamp())) AS int)")


class Compilations:
    """Counts compilations, those on the event loop, and the most at one time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.total, self.on_the_loop, self.running, self.most = 0, 0, 0, 0
        self._compile = compilation._compile
        monkeypatch.setattr(compilation, "_compile", self)

    def __call__(self, *arguments: Any) -> Any:
        self.total += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.on_the_loop += threading.current_thread() is threading.main_thread()
        time.sleep(0.02)  # so that others would begin meanwhile
        try:
            return self._compile(*arguments)
        finally:
            self.running -= 1


@pytest.fixture
async def now(database: Database) -> int:
    """The time. The application had another description of a role in each of the last six minutes."""
    for statement in SETUP:
        await database.value(Statement(statement))
    now: int = await database.value(NOW)
    for minute in range(6, 0, -1):
        await database.value(CHANGE, description=f"until {minute - 1}")
        await database.value(SET_TIME, at=datetime.fromtimestamp(now - minute * 60).astimezone())
    await database.open_connections()  # what was read before a connection was opened is not cached
    return now


async def description_at(facts: StoredFacts, at: int, caller: str = "user 1") -> str:
    loaded = await facts.past.load("1", 10, None, at, path=("at",), caller=caller)
    return loaded.application.roles["r1"].record.description


async def test_application_of_a_moment_is_compiled_once_and_in_a_thread(
    database: Database, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilations = Compilations(monkeypatch)
    facts = StoredFacts(database)
    for second in range(10):
        assert await description_at(facts, now - 270 + second) == "until 4"
    assert await description_at(facts, now - 330) == "until 5"
    assert await description_at(facts, now - 330, "user 2") == "until 5"
    assert await description_at(facts, now - 4000) == ""
    assert (compilations.total, compilations.on_the_loop) == (3, 0)


async def test_application_that_has_not_changed_since_is_that_of_the_present(
    database: Database, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilations = Compilations(monkeypatch)
    facts = StoredFacts(database)
    await facts.load("1", 10, None)
    for second in range(3):
        assert await description_at(facts, now - second) == "until 0"
    await database.value(CHANGE, description="new")
    await database.value(SET_TIME, at=datetime.fromtimestamp(now + 60).astimezone())
    assert await description_at(facts, now) == "until 0"
    assert compilations.total == 2


async def test_one_caller_compiles_one_application_at_a_time(
    database: Database, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilations = Compilations(monkeypatch)
    facts = StoredFacts(database)
    async with trio.open_nursery() as nursery:
        for minute in range(2, 6):
            nursery.start_soon(description_at, facts, now - minute * 60 + 5)
    assert (compilations.total, compilations.most) == (4, 1)


async def test_compiled_applications_of_the_past_have_a_limited_size(
    database: Database, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_applications, "MAX_BYTES", 280_000)  # one has about 100 kB
    compilations = Compilations(monkeypatch)
    facts = StoredFacts(database)
    for minute in (2, 3, 4, 4, 3, 2):
        await description_at(facts, now - minute * 60 + 5)
    assert compilations.total == 4
