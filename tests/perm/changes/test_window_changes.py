"""Begins and ends of time windows: events of the change stream for the users concerned, once."""

from typing import Any

import pytest
import trio

from sso.db.transaction import Transaction
from sso.perm.changes import state_comparison
from sso.perm.changes.impact import PermissionChange
from sso.perm.changes.window_changes import WindowComparison
from sso.perm.stores.time_windows import ALL_APPLICATIONS, read_moment
from sso.services import Services
from tests.kit.row_locks import changed_by_another_transaction
from tests.perm.changes.recorded_events import ADD_USERS, FORGET, events
from tests.state.studio import apply

TANKS, SHIPS = 60, 61
GROUP, ADMITTED = "a" * 24, "b" * 24
RULE = {"private_data": {"chat": {"kick": {"value": True}}}}
GAINED = {"gained": ["private_data.chat.kick"], "lost": []}
LOST = {"gained": [], "lost": ["private_data.chat.kick"]}


class ShiftedClock:
    """The clock of the service, which the test moves on."""

    def __init__(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = int(services.database.clock.now())
        monkeypatch.setattr(services.database.clock, "now", lambda: float(self.at))


@pytest.fixture
def clock(services: Services, monkeypatch: pytest.MonkeyPatch) -> ShiftedClock:
    return ShiftedClock(services, monkeypatch)


def document(time: dict[str, Any]) -> dict[str, Any]:
    """A role, a group that gets a role, and a group that a project admits, each with the window."""

    def group(group_id: str, condition: dict[str, Any]) -> dict[str, Any]:
        conditions = [{"title": "window", "condition": condition | {"time": time}}]
        return {"group_id": group_id, "project_id": "windows", "title": group_id[:3], "conditions": conditions}

    granted = [{"group_id": GROUP, "role": "granted", "action": "grant"}]
    return {
        "users": [
            {"user_id": "8001", "login": "ann@one.example"},
            {"user_id": "8002", "login": "bob@two.example", "tags": ["vip"]},
            {"user_id": "8003", "login": "cat@three.example"},
        ],
        "projects": [
            {
                "title": "windows",
                "settings": {"services": {str(SHIPS): {"groups": granted}}},
                "admins": ["8003"],
            }
        ],
        "groups": [group(GROUP, {"tag": "vip"}), group(ADMITTED, {"domain": "three.example"})],
        "applications": [
            {"application_id": TANKS, "name": "Tanks"},
            {"application_id": SHIPS, "name": "Ships", "project_id": "windows"},
        ],
        "roles": {
            str(TANKS): [{"name": "weekend", "meta": RULE, "condition": {"domain": "one.example", "time": time}}],
            str(SHIPS): [{"name": "granted", "meta": RULE}],
        },
    }


async def test_begin_and_end_are_recorded_once_for_the_users_concerned(services: Services, clock: ShiftedClock) -> None:
    changes = services.permissions.window_changes
    start = clock.at + 1000
    await apply(services, document({"from": start, "until": start + 100}))
    await services.database.value(FORGET)
    assert await changes.record_due() == start
    clock.at = start - 1
    assert await changes.record_due() == start
    assert await events(services) == []
    clock.at = start
    async with trio.open_nursery() as nursery:  # as on several workers
        for _ in range(3):
            nursery.start_soon(changes.record_due)
    begun = [("permissions_changed", "8001", TANKS, GAINED), ("permissions_changed", "8002", SHIPS, GAINED)]
    assert await events(services) == begun
    clock.at = start + 100_000  # also after a time without any worker
    assert await changes.record_due() == 2**62
    ended = [("permissions_changed", "8001", TANKS, LOST), ("permissions_changed", "8002", SHIPS, LOST)]
    assert await events(services) == begun + ended
    assert await services.database.transaction(read_moment, ALL_APPLICATIONS, 0) == clock.at


async def test_window_of_a_group_that_a_project_admits_concerns_its_members(
    services: Services, clock: ShiftedClock
) -> None:
    start = clock.at + 1000
    lists = {"memberships": [{"id": "windows", "allow": [ADMITTED]}]}
    tagged = document({"until": start})
    tagged["groups"][1] |= {"tags": ["project"]}
    await apply(services, tagged | lists)
    await services.permissions.window_changes.record_due()
    await services.database.value(FORGET)
    clock.at = start
    await services.permissions.window_changes.record_due()
    lost = {row[1]: row[3]["lost"] for row in await events(services) if row[2] == 1}
    assert list(lost) == ["8003"]
    assert "private_data.projectAccess.windows.private_data.project.can_manage_project" in lost["8003"]


async def test_window_that_concerns_too_many_users_is_one_event(
    services: Services, clock: ShiftedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_comparison, "MAX_EXACT_USERS", 100)
    start = clock.at + 1000
    role = {"name": "weekend", "meta": RULE, "condition": {"time": {"from": start}}}
    parts = {"applications": [{"application_id": TANKS, "name": "Tanks"}], "roles": {str(TANKS): [role]}}
    await apply(services, parts)
    await services.permissions.window_changes.record_due()
    await services.database.value(ADD_USERS, first=1, last=101)
    await services.database.value(FORGET)
    clock.at = start
    await services.permissions.window_changes.record_due()
    [(kind, user_id, application_id, data)] = await events(services)
    assert (kind, user_id, application_id) == ("application_changed", None, TANKS)
    assert data["users"] == 101


async def test_application_that_fails_does_not_hold_up_the_others(
    services: Services, clock: ShiftedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = services.permissions.window_changes
    start = clock.at + 1000
    await apply(services, document({"from": start}))
    await changes.record_due()
    await services.database.value(FORGET)
    clock.at = start
    compare, compared = WindowComparison.compare, []

    async def fail_at_tanks(self: WindowComparison, tx: Transaction, application_id: int) -> list[PermissionChange]:
        compared.append(application_id)
        if application_id == TANKS:
            raise KeyError("role")
        return await compare(self, tx, application_id)

    with monkeypatch.context() as patched:
        patched.setattr(WindowComparison, "compare", fail_at_tanks)
        for _ in range(2):
            await changes.record_due()
            clock.at += 10
    ships = ("permissions_changed", "8002", SHIPS, GAINED)
    assert await events(services) == [ships]
    assert compared == [TANKS, SHIPS, TANKS]  # what is recorded is not compared again
    await changes.record_due()
    assert await events(services) == [ships, ("permissions_changed", "8001", TANKS, GAINED)]


async def test_begin_during_the_write_that_saves_the_window_is_recorded(
    services: Services, clock: ShiftedClock, dsn: str
) -> None:
    changes = services.permissions.window_changes
    start = clock.at + 1000
    await apply(services, document({"from": start + 5000}))
    await changes.record_due()
    await services.database.value(FORGET)
    write = f"""WITH applications AS (
            UPDATE applications SET revision = revision + 1 WHERE application_id = {TANKS}
        )
        UPDATE roles SET condition = jsonb_set(condition, '{{time,from}}', '{start}') WHERE application_id = {TANKS}"""
    with changed_by_another_transaction(dsn, write):
        clock.at = start
        await changes.record_due()
        assert await events(services) == []
    for _ in range(2):
        await changes.record_due()
        assert await events(services) == [("permissions_changed", "8001", TANKS, GAINED)]
    clock.at += 10
    await changes.record_due()
    assert len(await events(services)) == 1
