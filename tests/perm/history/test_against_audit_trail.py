"""Random writes: permissions at past moments, and the dry run of each write, agree with a replay of the audit trail.

The replay and the reference evaluator share no code with the service. SSO_TEST_ROUNDS=200: as many random sequences.
"""

import json
import random
import re
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.kit.browser import query
from tests.kit.timeline import Timeline
from tests.perm.endpoints.conftest import FACTOR, ApiResponse, Studio, studio
from tests.perm.endpoints.connections import ROUNDS
from tests.perm.history.audit_replay import AuditReplay
from tests.perm.history.random_writes import PermissionWrite, World, WriteGenerator
from tests.perm.reference_evaluator import ReferenceEvaluator

__all__ = ["studio"]

SEEDS = [random.randrange(10**9) for _ in range(ROUNDS)] or [1]
WRITES = 30 if ROUNDS else 10
GROUP_ID = re.compile(r"(?<=\.groups\.)[0-9a-f]{24}")
ADDRESS = "127.0.0.1"  # of this test
pytestmark = pytest.mark.timeout(300)

Answers = dict[tuple[str, int], set[str]]  # by user and application


@dataclass
class History:
    """Writes, and remembers the moment after each of them."""

    studio: Studio
    state: AuditReplay
    timeline: Timeline
    moments: list[tuple[int, AuditReplay]] = field(default_factory=list)
    last_entry: int = 0

    @classmethod
    def begin(cls, studio: Studio) -> "History":
        central = studio.root.call("meta/schema", action="get", application_id=1).data
        history = cls(studio, AuditReplay(central), Timeline(studio.server))
        history.replay()
        return history

    def replay(self) -> None:
        """Applies the entries since the last time, and remembers this moment."""
        entries = query(self.studio.server, "SELECT * FROM audit WHERE id > $1 ORDER BY id", self.last_entry)
        for row in entries:
            values = {name: row[name] and json.loads(row[name]) for name in ("before", "after")}
            self.state.apply({**row, **values})
            self.last_entry = row["id"]
        self.moments.append((self.timeline.mark(), self.state.copy()))

    def send(self, write: PermissionWrite, **options: Any) -> ApiResponse:
        root = self.studio.root
        if write.is_endpoint:
            return root.call(write.path, **write.body, **({"options": options} if options else {}))
        headers = {"Authorization": f"Bearer {root.jwt}", "Factor": FACTOR}
        response = self.studio.client.patch(f"/api/admin{write.path}", json=write.body, headers=headers)
        return ApiResponse(response.status_code, response.json())

    def answers(self, world: World) -> Answers:
        """What the reference evaluator says about all users now; no condition on the address holds."""
        now = int(time.time())  # ends of roles and entries are hours away
        return {
            (user_id, application_id): set(self.reference(self.state, user_id, application_id, now, None).full())
            for user_id in self.state.users
            for application_id in (1, *world.applications)
        }

    @staticmethod
    def reference(
        state: AuditReplay, user_id: str, application_id: int, now: int, ip: str | None
    ) -> ReferenceEvaluator:
        return ReferenceEvaluator(state.scenario(user_id, application_id, now, ip))


def world_of(history: History) -> World:
    """Two projects, each with an application whose role ``r1`` the project grants to a group."""
    studio = history.studio
    projects = [studio.project(), studio.project()]
    applications = [studio.application(project_id) for project_id in projects]
    users = [studio.user(), studio.user(tags=["t1"]), studio.user(login=f"x{applications[0]}@other.org")]
    for project_id, application_id in zip(projects, applications, strict=True):
        studio.role(application_id, "r1", "a")
        studio.role(application_id, "r2", "chat")
        group_id = studio.group(project_id, users[0].user_id, tags=("project",))
        action = {"group_id": group_id, "role": "r1", "action": "grant"}
        settings = {"services": {str(application_id): {"groups": [action]}}}
        data = {"id": project_id, "settings": settings}
        assert studio.root.call("project", action="save", data=data).status == 200
    for name in ("g1", "g2"):
        studio.role(1, name, project={"a": {"value": True}}, app={name: {"value": True}})
    history.replay()
    ids = [user.user_id for user in users]
    return World(ids, applications, projects, studio.keeper.user_id, history.state)


def check_dry_run(history: History, world: World, write: PermissionWrite, dry: ApiResponse, before: Answers) -> None:
    """The dry run of the write has announced what the replay says has changed."""
    after = history.answers(world)
    expected = {key: (sorted(after[key] - old), sorted(old - after[key])) for key, old in before.items()}
    announced: dict[tuple[str, int], tuple[list[str], list[str]]] = {}
    for change in dry.body["users"]:
        key = change["user_id"], change.get("application_id", write.body.get("application_id"))
        announced[key] = sorted(with_stored_group(history, line) for line in change["gained"]), change["lost"]
    assert announced == {key: change for key, change in expected.items() if any(change)}, write
    assert dry.body["total"] == len({user_id for user_id, _ in announced})


def with_stored_group(history: History, line: str) -> str:
    """The line with the id of the newest group in place of an id that only the dry run has given to the group."""
    groups = history.state.groups
    return GROUP_ID.sub(lambda match: match[0] if match[0] in groups else list(groups)[-1], line)


def check_moment(
    history: History, moment: int, state: AuditReplay, user_id: str, application_id: int, *, every_type: bool
) -> None:
    at = history.timeline.at(moment)

    def get(kind: str, **options: Any) -> ApiResponse:
        body = {"application_id": application_id, "data": {"user_id": user_id, "type": kind}}
        return history.studio.root.call("meta/data", action="get", **body, options={"at": at, **options})

    listed = get("list", with_exp=True)
    if not state.exists(user_id, application_id):
        assert listed.status == 404
        return
    if state.is_removed(application_id):
        assert (listed.status, listed.body["error"]) == (403, "removed")
        return
    reference = history.reference(state, user_id, application_id, at, ADDRESS)
    assert sorted(listed.data) == reference.full(with_exp=True)
    assert listed.body["expired"] == reference.expired()
    if not every_type:
        return
    explained = get("list_short", explain=True).body
    assert sorted(explained["data"]) == reference.short()
    assert set(explained["explain"]) == {line.partition("|")[0] for line in reference.short()}
    assert sorted(get("roles").data) == reference.roles()


def get_pages(history: History, path: str, **query: Any) -> list[dict[str, Any]]:
    """Follows the pages of a reverse question, two records at a time. No record comes twice."""
    headers = {"Authorization": f"Bearer {history.studio.root.jwt}", "Factor": FACTOR}
    records: list[dict[str, Any]] = []
    while True:
        response = history.studio.client.get(f"/api/admin{path}", params={"limit": 2, **query}, headers=headers)
        assert response.status_code == 200, response.text
        records += response.json()["data"]
        query["after"] = response.json()["next"]
        if query["after"] is None:
            return records


def check_reverse_questions(
    history: History, generator: WriteGenerator, moment: int | None, state: AuditReplay, application_id: int
) -> None:
    """Who has a rule, and what a user has, are what the reference evaluator says about all users, one by one."""
    now = int(time.time()) if moment is None else history.timeline.at(moment)
    at = {} if moment is None else {"at": now}
    users = [user_id for user_id in state.users if state.exists(user_id, application_id)]
    lines = {user_id: history.reference(state, user_id, application_id, now, None).full() for user_id in users}
    held = {user_id: dict(split_line(line) for line in lines[user_id]) for user_id in users}
    rules = sorted({rule for user_id in users for rule in held[user_id]})
    for rule in (*generator.some(tuple(rules), 2), "private_data.nobody"):
        expected = {user_id: held[user_id][rule] for user_id in sorted(users) if rule in held[user_id]}
        found = get_pages(history, f"/applications/{application_id}/who", rule=rule, **at)
        assert {record["user_id"]: record["params"] for record in found} == expected, rule
        assert [record["user_id"] for record in found] == sorted(expected)
    user_id = generator.one(tuple(users))
    rules_of_user = get_pages(history, f"/users/{user_id}/can", application_id=application_id, **at)
    short = history.reference(state, user_id, application_id, now, None).short()
    assert {record["rule"]: record["params"] for record in rules_of_user} == dict(map(split_line, short))
    assert len(rules_of_user) == len(short)


def split_line(line: str) -> tuple[str, list[str]]:
    """The name and the parameters of a rule in a list."""
    name, _, params = line.partition("|")
    return name, params.split(",") if params else []


@pytest.mark.parametrize("seed", SEEDS)
def test_past_and_dry_run_agree_with_a_replay_of_the_audit_trail(studio: Studio, seed: int) -> None:
    history = History.begin(studio)
    first_moment = len(history.moments)
    world = world_of(history)
    generator = WriteGenerator(seed, world, history.timeline.now())
    accepted = 0
    for number in range(WRITES):
        write = generator.write(late=number > WRITES * 0.8)
        before, dry = history.answers(world), None
        if write.is_endpoint:
            dry = history.send(write, dry_run=True)
        response = history.send(write)
        history.replay()
        accepted += response.status == 200
        if dry is not None:
            assert dry.status == response.status, (write, dry.body, response.body)
            if response.status == 200:
                check_dry_run(history, world, write, dry, before)
        if generator.sometimes(0.5):
            check_reverse_questions(history, generator, None, history.state, world.applications[0])
            check_reverse_questions(history, generator, None, history.state, 1)
    assert accepted > WRITES // 2
    for moment, state in history.moments[first_moment:]:
        for user_id in (*world.users, world.keeper):
            for application_id in (1, *world.applications):
                every_type = generator.sometimes(0.2)
                check_moment(history, moment, state, user_id, application_id, every_type=every_type)
        for application_id in (1, *world.applications):
            if state.exists(world.keeper, application_id) and generator.sometimes(0.2):
                check_reverse_questions(history, generator, moment, state, application_id)
