"""What other records lose when a role, an application or a group is changed: assignments, memberships, grants.

Each loss is recorded in the audit trail of the project that it concerns, with its cause.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditActor

_UNASSIGN = Statement(
    """DELETE FROM role_assignments WHERE application_id = :application_id AND name = :name
    RETURNING user_id, name, expired, ttl"""
)
_END_ROLE = Statement(
    "DELETE FROM project_members WHERE role = :name RETURNING project_id, user_id, level, resource, role"
)
_END_RESOURCE = Statement(
    """DELETE FROM project_members
    WHERE project_id = :project_id AND level = ANY(CAST(:levels AS text[])) AND resource = :resource
    RETURNING project_id, user_id, level, resource, role"""
)


def _settings(changed: str, where: str) -> Statement:
    """Change the settings of projects; the settings before and after, of each."""
    return Statement(
        f"""WITH old AS (SELECT p.id, p.settings FROM projects p WHERE {where} ORDER BY p.id FOR UPDATE),
        new AS (UPDATE projects p SET settings = {changed} FROM old WHERE p.id = old.id RETURNING p.id, p.settings)
        SELECT new.id, old.settings AS before, new.settings AS after FROM new JOIN old USING (id) ORDER BY new.id"""  # noqa: S608 - the parts are ours
    )


_FORGET_ROLE = _settings(
    """jsonb_set(p.settings, CAST(:path AS text[]), (
        SELECT coalesce(jsonb_agg(item), '[]') FROM jsonb_array_elements(p.settings #> CAST(:path AS text[])) item
        WHERE NOT (item ->> 'role' = :name AND (:all OR item ->> 'action' = 'grant'))))""",
    "jsonb_typeof(p.settings #> CAST(:path AS text[])) = 'array'",
)
_FORGET_APPLICATION = _settings(
    "p.settings #- ARRAY['services', CAST(:application_id AS text)]",
    "p.id = :project_id",
)
_FORGET_GROUP = _settings(
    """jsonb_set(p.settings, '{services}', (
        SELECT coalesce(jsonb_object_agg(key, jsonb_set(value, '{groups}', (
            SELECT coalesce(jsonb_agg(item), '[]') FROM jsonb_array_elements(value -> 'groups') item
            WHERE item ->> 'group_id' <> :group_id))), '{}')
        FROM jsonb_each(p.settings -> 'services')))""",
    "p.id = :project_id AND jsonb_typeof(p.settings -> 'services') = 'object'",
)


class Cascade:
    """The losses that one change causes; ``cause`` is its operation and target, such as ``role.delete 40/guard``."""

    def __init__(self, tx: Transaction, actor: AuditActor, cause: str) -> None:
        self._tx = tx
        self._actor = actor
        self._cause = cause

    async def end_assignments(self, application_id: int, project_id: str | None, name: str) -> None:
        """End all assignments of a role that is deleted. The application is locked."""
        rows = await self._tx.rows(_UNASSIGN, application_id=application_id, name=name)
        about = {"project_id": project_id, "application_id": application_id}
        lost = [dict(row) for row in rows]
        await self._record("permissions.cascade", f"{application_id}/{name}", {"roles": lost}, {"roles": []}, **about)

    async def end_role_in_projects(self, application_id: int, name: str, *, generic: bool, grants_only: bool) -> None:
        """Take a role out of project access: if it is deleted, or has become protected."""
        if generic:
            await self._members(await self._tx.rows(_END_ROLE, name=name))
        path = ["services", str(application_id), "groups"]
        await self._projects(await self._tx.rows(_FORGET_ROLE, path=path, name=name, all=not grants_only))

    async def end_application_in_project(self, application_id: int, project_id: str) -> None:
        """End what a locked project gave at an application that is removed or moves away."""
        about: Mapping[str, Any] = {"levels": ["applications", "services"], "resource": str(application_id)}
        await self._members(await self._tx.rows(_END_RESOURCE, project_id=project_id, **about))
        found = await self._tx.rows(_FORGET_APPLICATION, project_id=project_id, application_id=str(application_id))
        await self._projects(found)

    async def end_group_in_project(self, group_id: str, project_id: str) -> None:
        """End what a locked project gave to a group, and at it, when the group is deleted."""
        await self._projects(await self._tx.rows(_FORGET_GROUP, project_id=project_id, group_id=group_id))
        found = await self._tx.rows(_END_RESOURCE, project_id=project_id, levels=["groups"], resource=group_id)
        await self._members(found)

    async def _members(self, rows: Sequence[Row]) -> None:
        by_project: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            member = dict(row)
            by_project.setdefault(member.pop("project_id"), []).append(member)
        for project_id, members in sorted(by_project.items()):
            lost = {"users": members}
            await self._record("membership.cascade", project_id, lost, {"users": []}, project_id=project_id)

    async def _projects(self, rows: Sequence[Row]) -> None:
        for row in rows:
            before, after = ({"services": row[name].get("services", {})} for name in ("before", "after"))
            await self._record("project.cascade", row["id"], before, after, project_id=row["id"])

    async def _record(self, operation: str, target: str, before: Any, after: Any, **about: Any) -> None:
        if before != after:
            caused = after | {"cause": self._cause}
            await audit.write(self._tx, self._actor, operation, target, before, caused, **about)
