"""A project as far as it decides who has which rights: its members, whom it lets in, what its groups are granted."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from sso.core.errors import NotFound
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.perm.engine.decode import decode_group, decode_project
from sso.perm.engine.facts import Group, GroupAction, ProjectFacts
from sso.perm.engine.records import Assignment
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.project import ProjectResources

_LOCK = Statement("SELECT * FROM projects WHERE id = :id FOR UPDATE")
_LOCK_ALL = Statement("SELECT * FROM projects WHERE id = ANY(CAST(:ids AS text[])) ORDER BY id FOR UPDATE")
_BELONGINGS = Statement(
    """SELECT
        (SELECT coalesce(jsonb_agg(jsonb_build_array(application_id, service_meta <> '{}')), '[]')
         FROM applications WHERE project_id = :id AND NOT removed AND application_id <> 1) AS applications,
        (SELECT coalesce(jsonb_object_agg(id, tags), '{}') FROM user_groups WHERE project_id = :id) AS groups"""
)
# Only the groups that decide something: those in a list, and those with grants or revokes.
_PROJECTS = Statement(
    """SELECT p.id, p.removed, p.settings, p.allow, p.disallow,
        (SELECT coalesce(jsonb_agg(jsonb_build_array(g.id, g.conditions,
            ARRAY(SELECT u.user_id FROM group_users u WHERE u.group_id = g.id))), '[]')
         FROM user_groups g WHERE g.project_id = p.id AND (g.id = ANY (p.allow || p.disallow) OR g.id IN (
            SELECT item ->> 'group_id' FROM jsonb_each(coalesce(p.settings -> 'services', '{}')) entry,
                jsonb_array_elements(entry.value -> 'groups') item))) AS groups
    FROM projects p WHERE p.id = ANY(CAST(:ids AS text[])) AND NOT p.removed"""
)
_MEMBERS = Statement(
    """SELECT project_id, user_id, level, resource, role, expired, ttl FROM project_members
    WHERE project_id = ANY(CAST(:ids AS text[]))
        AND (CAST(:roles AS text[]) IS NULL OR (level = 'project' AND role = ANY(CAST(:roles AS text[]))))"""
)
_PEOPLE = Statement(
    "SELECT user_id, login, tags, purchases, disabled FROM users WHERE user_id = ANY(CAST(:ids AS text[]))"
)


class Member(NamedTuple):
    """One role of one user at one place of a project."""

    user_id: str
    level: str
    resource: str
    role: str
    expired: int
    ttl: int

    @property
    def assignment(self) -> Assignment:
        return Assignment(self.role, self.expired, self.ttl)


class Action(NamedTuple):
    """A grant or revoke of an application's role, with those whom it is for."""

    application_id: int
    action: GroupAction
    users: frozenset[str]
    conditions: tuple[Any, ...]


@dataclass(frozen=True)
class ProjectState:
    facts: ProjectFacts  # without applications and memberships
    members: frozenset[Member]

    @cached_property
    def _groups(self) -> dict[str, Group]:
        return {group.id: group for group in self.facts.groups}

    @cached_property
    def actions(self) -> frozenset[Action]:
        return frozenset(
            Action(application_id, action, *_access(self._groups.get(action.group_id)))
            for application_id, actions in self.facts.services.items()
            for action in actions
        )

    @property
    def entry(self) -> Any:
        """Everything that decides whom the project lets in: equal if it is still decided in the same way."""
        lists = [
            {group_id: _access(self._groups.get(group_id)) for group_id in listed}
            for listed in (self.facts.allow, self.facts.disallow)
        ]
        return self.facts.allowed_domains, lists


def _access(group: Group | None) -> tuple[frozenset[str], tuple[Any, ...]]:
    if group is None:
        return frozenset(), ()
    return group.users, tuple(item.condition for item in group.conditions)


@dataclass(frozen=True)
class KnownUser:
    facts: UserFacts
    disabled: bool


async def lock_project(tx: Runner, project_id: str) -> Row:
    row = await tx.row(_LOCK, id=project_id)
    if row is None:
        raise NotFound("project not found")
    return row


async def lock_projects(tx: Runner, project_ids: Iterable[str | None]) -> dict[str, Row]:
    """Those that exist, locked in the order of their ids to avoid deadlocks."""
    ids = sorted({project_id for project_id in project_ids if project_id is not None})
    return {row["id"]: row for row in await tx.rows(_LOCK_ALL, ids=ids)} if ids else {}


async def belongings(tx: Runner, project_id: str) -> ProjectResources:
    """What a locked project has: whatever it names is judged by this."""
    row = await tx.row(_BELONGINGS, id=project_id)
    assert row is not None
    return ProjectResources(
        applications=frozenset(item for item, _ in row["applications"]),
        services=frozenset(item for item, is_service in row["applications"] if is_service),
        groups={group: tuple(tags) for group, tags in row["groups"].items()},
    )


async def read_states(
    runner: Runner, project_ids: Iterable[str], roles: Iterable[str] | None = None
) -> dict[str, ProjectState]:
    """Projects that are not removed. With ``roles``, only these assignments, and only those over the whole project."""
    ids = list(project_ids)
    members: dict[str, set[Member]] = {}
    for project_id, *member in await runner.rows(_MEMBERS, ids=ids, roles=None if roles is None else list(roles)):
        members.setdefault(project_id, set()).add(Member(*member))
    return {
        row["id"]: ProjectState(_facts(row), frozenset(members.get(row["id"], ())))
        for row in await runner.rows(_PROJECTS, ids=ids)
    }


def _facts(row: Row) -> ProjectFacts:
    groups = [decode_group(group_id, users, conditions) for group_id, conditions, users in row["groups"]]
    return decode_project(row, groups=groups)


async def read_people(runner: Runner, user_ids: Iterable[str]) -> dict[str, KnownUser]:
    """Users by their ids; unknown ones are left out. Nobody has an address: a condition on it holds for none."""
    ids = list(user_ids)
    return {
        row["user_id"]: KnownUser(
            UserFacts.from_login(row["user_id"], row["login"], tuple(row["tags"]), tuple(row["purchases"])),
            row["disabled"],
        )
        for row in (await runner.rows(_PEOPLE, ids=ids) if ids else ())
    }
