"""Random writes: a dry run predicts exactly what the permissions of all users then become.

The permissions before and after a write are read as meta/data reads them, user by user, which shares nothing with the
comparison of states. A failure names its seed. A usual run has few seeds; SSO_TEST_ROUNDS=20 has many.
"""

import os
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from sso.audit.trail import AuditActor
from sso.db.transaction import Transaction
from sso.perm.changes.impact import Impact
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import WRITE, WriteMode
from sso.perm.errors import PermissionConflict
from sso.perm.stores.applications import remove_application, save_application
from sso.perm.stores.groups import delete_group, lock_group
from sso.perm.stores.locks import lock_application
from sso.perm.stores.projects import remove_project
from sso.perm.stores.roles import delete_role, read_roles
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from tests.kit.long_tests import IS_LONG_RUN

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
SEEDS = 6 * ROUNDS if IS_LONG_RUN else 4
pytestmark = pytest.mark.timeout(120 + ROUNDS * 60)
DRY_RUN = WriteMode(dry_run=True)
ACTOR = AuditActor()
USERS = [str(7000 + number) for number in range(6)]
ROLES = ("default", "mod", "staff", "vip")
GENERIC = ("guide", "viewer", "app_admin", "group_admin")
TAGS = ("changes_gold", "changes_silver")
DOMAINS = ("one.example", "two.example")
AREAS = ("chat", "shop")

Lists = dict[tuple[str, int], set[str]]
Write = tuple[Scope, Callable[[Transaction], Awaitable[Any]]]


class RandomState:
    """Documents with few names, so that their parts often meet."""

    def __init__(self, random: Random, serial: int = 0) -> None:
        """``serial`` makes applications, projects and groups that no other state has."""
        self.random = random
        first = 50 + 10 * serial
        self.applications = (first, first + 1, first + 2)
        self.projects = (f"alpha{serial}", f"beta{serial}")
        owners = (self.projects[0], self.projects[0], self.projects[1])
        self.groups = {f"{serial:023}{letter}": owner for letter, owner in zip("abc", owners, strict=True)}

    def some(self, items: Any, chance: float = 0.5) -> list[Any]:
        return [item for item in items if self.random.random() < chance]

    def document(self) -> dict[str, Any]:
        return {
            "users": [self.user(user_id) for user_id in USERS],
            "projects": [{"title": project, "settings": self.settings(project)} for project in self.projects],
            "applications": [self.application(number) for number in self.applications],
            "schemas": {str(number): {"private_data": self.tree(0.2)} for number in self.applications},
            "roles": {str(number): self.roles() for number in self.applications}
            | {"1": [{"name": "guide", "meta": self.generic(), "condition": self.condition(0.3)}]},
            "groups": [self.group(group_id) for group_id in self.groups],
            "memberships": [self.membership(project) for project in self.projects],
            "permissions": [
                {"user_id": user_id, "application_id": number, "data": self.record()}
                for user_id in USERS
                for number in self.some(self.applications)
            ],
        }

    def user(self, user_id: str) -> dict[str, Any]:
        login = f"u{user_id}@{self.random.choice(DOMAINS)}"
        return {"user_id": user_id, "login": login, "tags": self.some(TAGS), "purchases": self.some(("game",))}

    def application(self, number: int) -> dict[str, Any]:
        project = dict(zip(self.applications, self.projects, strict=False)).get(number)
        return {"application_id": number, "name": f"App {number}", "project_id": project}

    def tree(self, chance: float = 0.6) -> dict[str, Any]:
        return {
            area: {rule: self.rule(chance) for rule in ("read", "kick")} for area in AREAS if self.random.random() < 0.8
        }

    def rule(self, chance: float) -> dict[str, Any]:
        params = self.random.choice(("", "", "eu", "us,eu"))
        return {"value": self.random.random() < chance, **({"params": params} if params else {})}

    def generic(self) -> dict[str, Any]:
        names = {"project": "can_view_project", "app": "can_view_app", "srv": "can_view_service"}
        return {"private_data": {section: {names[section]: {"value": True}} for section in self.some(names)}}

    def roles(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "meta": {self.random.choice(("private_data", "public_data")): self.tree()},
                "params": self.random.choice(("", "", "x")),
                "default": self.random.random() < 0.1,
                "condition": self.condition(0.4),
            }
            for name in ROLES[1:] + tuple(self.some(ROLES[:1], 0.2))
        ]

    def condition(self, chance: float) -> dict[str, Any]:
        return self._condition(2) if self.random.random() < chance else {}

    def _condition(self, depth: int) -> dict[str, Any]:
        kinds: list[dict[str, Any]] = [
            {"tag": self.random.choice(TAGS)},
            {"domain": self.random.choice((*DOMAINS, "ONE.example"))},
            {"uid": self.some(USERS, 0.3)},
            {"purchase": "game"},
            {"everyone": True},
        ]
        if depth:
            parts = [self._condition(depth - 1) for _ in range(self.random.randint(0, 2))]
            kinds.append({self.random.choice(("and", "or")): parts})
        return kinds[self.random.randrange(len(kinds))]

    def group(self, group_id: str) -> dict[str, Any]:
        conditions = [{"title": "Some", "condition": self.condition(0.9)}] if self.random.random() < 0.5 else []
        conditions = [item for item in conditions if item["condition"]]
        return {
            "group_id": group_id,
            "project_id": self.groups[group_id],
            "title": f"Group {group_id[-1]}",
            "users": self.some(USERS, 0.3),
            "conditions": conditions,
            "tags": ["project"],
        }

    def settings(self, project: str) -> dict[str, Any]:
        groups = [group for group, owner in self.groups.items() if owner == project]
        number = self.applications[self.projects.index(project)]
        actions = [
            {
                "group_id": group,
                "role": self.random.choice(ROLES[1:]),
                "action": self.random.choice(("grant", "revoke")),
            }
            for group in self.some(groups, 0.7)
        ]
        domains = self.some(DOMAINS, 0.8) if self.random.random() < 0.3 else []
        return {"services": {str(number): {"groups": actions}}, "allowed_domains": domains}

    def membership(self, project: str) -> dict[str, Any]:
        groups = [group for group, owner in self.groups.items() if owner == project]
        number = str(self.applications[self.projects.index(project)])
        users = [
            {
                "user_id": user_id,
                "roles": {
                    "project": self.some(GENERIC[:2], 0.4),
                    "applications": {number: self.some(GENERIC, 0.3)},
                    "groups": {group: self.some(GENERIC[3:]) for group in groups},
                },
            }
            for user_id in self.some(USERS)
        ]
        lists = {name: self.some(groups, 0.3) for name in ("allow", "disallow")}
        return {"id": project, "users": users, **lists}

    def record(self) -> dict[str, Any]:
        roles = [self.assignment(name) for name in self.some(ROLES[1:], 0.4)]
        return {"roles": roles, "private_data": self.tree() if self.random.random() < 0.3 else {}}

    def assignment(self, name: str) -> Any:
        return {"name": name, "expired": self.random.choice((0, 1, 4_000_000_000))}

    def write(self, services: Services) -> Write:
        """A write that a document cannot express: something is removed, or moves."""
        number, group = self.random.choice(self.applications), self.random.choice(list(self.groups))
        project = dict(zip(self.applications, self.projects, strict=False)).get(number)
        role = self.random.choice(ROLES[1:])
        other = self.random.choice((None, *(name for name in self.projects if name != project)))

        async def remove_role(tx: Transaction) -> None:
            await lock_application(tx, number)
            await delete_role(tx, ACTOR, number, project, (await read_roles(tx, number))[role])

        async def remove_group(tx: Transaction) -> None:
            await delete_group(tx, ACTOR, await lock_group(tx, group, self.groups[group]))

        async def move(tx: Transaction) -> None:
            await save_application(tx, ACTOR, services.keyring, number, {"project_id": other})

        writes: list[Write] = [
            (Scope.role(number, role, removed=True), remove_role),
            (Scope.project(self.groups[group]), remove_group),
            (Scope.application(number) | Scope.project(project, other), move),
            (
                Scope.application(number) | Scope.project(project),
                lambda tx: remove_application(tx, ACTOR, number),
            ),
            (Scope.project(self.groups[group]), lambda tx: remove_project(tx, ACTOR, self.groups[group])),
        ]
        return self.random.choice(writes)


async def permissions(services: Services, state: RandomState) -> Lists:
    now = int(services.database.clock.now())
    lists = {}
    for user_id in USERS:
        loaded = await services.permissions.facts.load_many(user_id, dict.fromkeys((1, *state.applications)))
        for application_id, facts in loaded.items():
            lists[user_id, application_id] = set(facts.render("list", now) if facts else ())
    return lists


def check(seed: object, impact: Impact, before: Lists, after: Lists) -> None:
    predicted = {(item.user_id, item.application_id): (set(item.gained), set(item.lost)) for item in impact.changes}
    actual = {key: (after[key] - before[key], before[key] - after[key]) for key in before if before[key] != after[key]}
    assert predicted == actual, f"seed {seed}"
    assert impact.is_exact


@pytest.fixture
async def applier(services: Services) -> Applier:
    return Applier(services.database, services.hasher, services.operations, writer=services.permissions.writer)


async def test_dry_run_of_random_documents_predicts_the_change(services: Services, applier: Applier) -> None:
    before: Lists = {}
    for seed in range(SEEDS):
        state = RandomState(Random(seed))
        document = parse(state.document())
        dry = await applier.run(document, DRY_RUN)
        if seed:
            assert await permissions(services, state) == before
        done = await applier.run(document, WRITE)
        after = await permissions(services, state)
        if seed:  # the first document creates the users, who have no permissions before
            check(seed, dry.impact, before, after)
        assert dry.impact == done.impact
        before = after


async def test_dry_run_of_random_removals_predicts_the_change(services: Services, applier: Applier) -> None:
    for seed in range(SEEDS):
        state = RandomState(Random(seed), serial=seed + 1)
        await applier.apply(parse(state.document()))
        scope, work = state.write(services)
        before = await permissions(services, state)
        try:
            dry = await services.permissions.writer.write(DRY_RUN, scope, work)
        except PermissionConflict:  # a group in a list of its project cannot be deleted
            continue
        assert await permissions(services, state) == before
        await services.permissions.writer.write(WRITE, scope, work)
        check(seed, dry.impact, before, await permissions(services, state))
