"""The parts of applications and projects that permissions depend on, as a transaction sees them.

A write is judged by two states: the one before it, and the one after it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, run_pure
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.decode import decode_group, decode_project
from sso.perm.engine.facts import ProjectApplication, ProjectFacts
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.project_state import FEW_CONDITIONS

_APPLICATIONS = Statement(
    """SELECT application_id, removed, project_id, revision, assertions FROM applications
    WHERE application_id = ANY(CAST(:ids AS int[])) OR project_id = ANY(CAST(:projects AS text[]))"""
)
# Groups with all their users, because the project is decoded once for all users.
_PROJECTS = Statement(
    """SELECT p.id, p.removed, p.settings, p.allow, p.disallow,
        (SELECT coalesce(jsonb_agg(jsonb_build_array(x.application_id, x.name, x.removed, x.service_meta <> '{}')
            ORDER BY x.application_id), '[]')
         FROM applications x WHERE x.project_id = p.id) AS applications,
        (SELECT coalesce(jsonb_agg(jsonb_build_array(g.id, g.conditions,
            ARRAY(SELECT gu.user_id FROM group_users gu WHERE gu.group_id = g.id)) ORDER BY g.id), '[]')
         FROM user_groups g WHERE g.project_id = p.id) AS groups
    FROM projects p WHERE p.id = ANY(CAST(:ids AS text[]))"""
)
_MEMBERS = Statement(
    """SELECT project_id, user_id, jsonb_agg(jsonb_build_array(level, resource, role, expired, ttl) ORDER BY position)
        AS roles
    FROM project_members WHERE project_id = ANY(CAST(:ids AS text[])) GROUP BY project_id, user_id"""
)

MemberRows = list[list[Any]]  # (level, resource, role, expired, ttl)


class ApplicationState(Struct, frozen=True):
    application_id: int
    removed: bool
    project_id: str | None
    revision: int
    assertions: list[str]


class PermissionState(Struct):
    """Applications and projects at one moment. Projects that the write does not change are read when needed."""

    applications: dict[int, ApplicationState]
    projects: dict[str, ProjectFacts]
    members: Mapping[str, Mapping[str, MemberRows]]  # of the projects in the scope: user id → roles
    compiled: dict[int, CompiledApplication] = field(default_factory=dict)

    @classmethod
    async def read(
        cls, runner: Runner, application_ids: Iterable[int], project_ids: Collection[str]
    ) -> "PermissionState":
        ids = list(application_ids)
        if not ids and not project_ids:
            return cls({}, {}, {})
        rows = await runner.rows(_APPLICATIONS, ids=ids, projects=list(project_ids))
        applications = {row["application_id"]: ApplicationState(**dict(row)) for row in rows}
        homes = {state.project_id for state in applications.values() if state.project_id is not None}
        state = cls(applications, {}, await _read_members(runner, project_ids))
        await state.read_projects(runner, homes | set(project_ids))
        return state

    async def compile(self, runner: Runner, facts: StoredFacts, application_ids: Iterable[int]) -> None:
        for application_id in application_ids:
            known = self.applications.get(application_id)
            if known is not None and application_id not in self.compiled:
                self.compiled[application_id] = await facts.read_compiled(runner, application_id, known.revision)

    async def read_projects(self, runner: Runner, project_ids: Iterable[str]) -> None:
        missing = [project_id for project_id in project_ids if project_id not in self.projects]
        if missing:
            for row in await runner.rows(_PROJECTS, ids=missing):
                takes_long = sum(len(conditions) for _, conditions, _ in row["groups"]) > FEW_CONDITIONS
                self.projects[row["id"]] = await run_pure(runner, takes_long, _project, row)

    def home(self, application_id: int) -> ProjectFacts | None:
        """Returns the project of an application."""
        application = self.applications.get(application_id)
        return self.projects.get(application.project_id) if application and application.project_id else None


async def _read_members(runner: Runner, project_ids: Collection[str]) -> dict[str, dict[str, MemberRows]]:
    members: dict[str, dict[str, MemberRows]] = {project_id: {} for project_id in project_ids}
    for row in await runner.rows(_MEMBERS, ids=list(project_ids)) if project_ids else ():
        members[row["project_id"]][row["user_id"]] = row["roles"]
    return members


def _project(row: Row) -> ProjectFacts:
    return decode_project(
        row,
        applications=[ProjectApplication(*item) for item in row["applications"]],
        groups=[decode_group(group_id, users, conditions) for group_id, conditions, users in row["groups"]],
    )
