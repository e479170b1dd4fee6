"""The parts of a project that decide about rights: members, access lists, and roles granted to groups."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Struct

from sso.core.ban import Ban, ban_in_force, read_bans
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, run_pure
from sso.perm.engine.decode import decode_group, decode_project
from sso.perm.engine.facts import Group, GroupAction, ProjectFacts
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.membership import MemberRole
from sso.perm.input.references import ProjectResources

MANY_MEMBERS = 100  # of a project; work with all their roles takes some milliseconds
FEW_CONDITIONS = 3  # of groups; each may have 256 nodes, which take some milliseconds

_RESOURCES = Statement(
    """SELECT
        (SELECT coalesce(jsonb_agg(jsonb_build_array(application_id, service_meta <> '{}')), '[]')
         FROM applications WHERE project_id = :id AND NOT removed AND application_id <> 1) AS applications,
        (SELECT coalesce(jsonb_object_agg(id, tags), '{}') FROM user_groups WHERE project_id = :id) AS groups"""
)
# Only the groups that matter for rights: those in a list, and those with grants or revokes.
_PROJECTS = Statement(
    """SELECT p.id, coalesce(nullif(p.display_name, ''), p.title) AS title, p.removed, p.settings, p.allow, p.disallow,
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
_USERS = Statement(
    """SELECT user_id, login, tags, purchases, bans,
        disabled OR ban_in_force(bans, CAST(ARRAY[] AS int[])) IS NOT NULL AS disabled
    FROM users WHERE user_id = ANY(CAST(:ids AS text[]))"""
)


class GroupRoleAction(NamedTuple):
    """A grant or revoke of an application's role, with the users and conditions of its group."""

    application_id: int
    action: GroupAction
    users: frozenset[str]
    conditions: tuple[Any, ...]


class ProjectState(Struct, frozen=True, dict=True):
    facts: ProjectFacts  # without applications and memberships
    members: frozenset[MemberRole]

    @cached_property
    def _groups(self) -> dict[str, Group]:
        return {group.id: group for group in self.facts.groups}

    @cached_property
    def actions(self) -> frozenset[GroupRoleAction]:
        return frozenset(
            GroupRoleAction(application_id, action, *_access(self._groups.get(action.group_id)))
            for application_id, actions in self.facts.services.items()
            for action in actions
        )

    @property
    def access_rules(self) -> Any:
        """All that decides which users may access the project; equal values mean equal decisions."""
        lists = [
            {group_id: _access(self._groups.get(group_id)) for group_id in group_ids}
            for group_ids in (self.facts.allow, self.facts.disallow)
        ]
        return self.facts.allowed_domains, lists


def _access(group: Group | None) -> tuple[frozenset[str], tuple[Any, ...]]:
    if group is None:
        return frozenset(), ()
    return group.users, tuple(item.condition for item in group.conditions)


class KnownUser(Struct, frozen=True):
    facts: UserFacts
    disabled: bool  # or banned everywhere
    bans: tuple[Ban, ...] = ()

    def is_excluded(self, project_id: str, now: int) -> bool:
        """Returns whether the user can do nothing in the project, whatever roles there are."""
        return (
            self.disabled or self.facts.cannot_administer or ban_in_force(self.bans, now, (), (project_id,)) is not None
        )


async def read_resources(tx: Runner, project_id: str) -> ProjectResources:
    """The applications, services and groups of a locked project: a save of the project may name only these."""
    row = await tx.row(_RESOURCES, id=project_id)
    assert row is not None
    return ProjectResources(
        applications=frozenset(item for item, _ in row["applications"]),
        services=frozenset(item for item, is_service in row["applications"] if is_service),
        groups={group: tuple(tags) for group, tags in row["groups"].items()},
    )


async def read_states(
    runner: Runner, project_ids: Iterable[str], roles: Iterable[str] | None = None
) -> dict[str, ProjectState]:
    """Returns projects that are not removed, by id.

    ``roles`` restricts the members to these roles over the whole project.
    """
    ids = list(project_ids)
    member_rows = await runner.rows(_MEMBERS, ids=ids, roles=None if roles is None else list(roles))
    members = await run_pure(runner, len(member_rows) > MANY_MEMBERS, _by_project, member_rows)
    states = {}
    for row in await runner.rows(_PROJECTS, ids=ids):
        takes_long = sum(len(conditions) for _, conditions, _ in row["groups"]) > FEW_CONDITIONS
        facts = await run_pure(runner, takes_long, _facts, row)
        states[row["id"]] = ProjectState(facts, frozenset(members.get(row["id"], ())))
    return states


def _by_project(rows: Iterable[Row]) -> dict[str, set[MemberRole]]:
    members: dict[str, set[MemberRole]] = {}
    for project_id, *member in rows:
        members.setdefault(project_id, set()).add(MemberRole(*member))
    return members


def _facts(row: Row) -> ProjectFacts:
    groups = [decode_group(group_id, users, conditions) for group_id, conditions, users in row["groups"]]
    return decode_project(row, groups=groups)


async def read_users(runner: Runner, user_ids: Iterable[str]) -> dict[str, KnownUser]:
    """Returns users by id, without those that do not exist.

    They have no address, so conditions on addresses do not hold.
    """
    ids = list(user_ids)
    return {
        row["user_id"]: KnownUser(
            UserFacts.from_login(row["user_id"], row["login"], tuple(row["tags"]), tuple(row["purchases"])),
            row["disabled"],
            read_bans(row["bans"]),
        )
        for row in (await runner.rows(_USERS, ids=ids) if ids else ())
    }
