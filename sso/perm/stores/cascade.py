"""Removes the assignments, memberships and grants that refer to a deleted or changed role, application or group.

Each removal is written to the audit trail of its project, together with its cause.
"""

from collections.abc import Sequence
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction

_DELETE_ASSIGNMENTS = Statement(
    """DELETE FROM role_assignments WHERE application_id = :application_id AND name = :name
    RETURNING user_id, name, expired, ttl"""
)
_DELETE_MEMBERS_WITH_ROLE = Statement(
    "DELETE FROM project_members WHERE role = :name RETURNING project_id, user_id, level, resource, role"
)
_DELETE_MEMBERS_AT_RESOURCE = Statement(
    """DELETE FROM project_members
    WHERE project_id = :project_id AND level = ANY(CAST(:levels AS text[])) AND resource = :resource
    RETURNING project_id, user_id, level, resource, role"""
)


def _update_settings(settings: str, where: str) -> Statement:
    """Sets the settings of the projects ``p`` that match and returns the settings of each before and after."""
    return Statement(
        f"""WITH locked AS (SELECT p.id, p.settings FROM projects p WHERE {where} ORDER BY p.id FOR UPDATE),
        updated AS (
            UPDATE projects p SET settings = {settings} FROM locked WHERE p.id = locked.id RETURNING p.id, p.settings)
        SELECT updated.id, locked.settings AS before, updated.settings AS after
        FROM updated JOIN locked USING (id) ORDER BY updated.id"""
    )


_REMOVE_ROLE_ACTIONS = _update_settings(
    """jsonb_set(p.settings, CAST(:path AS text[]), (
        SELECT coalesce(jsonb_agg(item), '[]') FROM jsonb_array_elements(p.settings #> CAST(:path AS text[])) item
        WHERE NOT (item ->> 'role' = :name AND (:all OR item ->> 'action' = 'grant'))))""",
    "jsonb_typeof(p.settings #> CAST(:path AS text[])) = 'array'",
)
_REMOVE_APPLICATION = _update_settings(
    "p.settings #- ARRAY['services', CAST(:application_id AS text)]",
    "p.id = :project_id",
)
_REMOVE_GROUP_ACTIONS = _update_settings(
    """jsonb_set(p.settings, '{services}', (
        SELECT coalesce(jsonb_object_agg(key, jsonb_set(value, '{groups}', (
            SELECT coalesce(jsonb_agg(item), '[]') FROM jsonb_array_elements(value -> 'groups') item
            WHERE item ->> 'group_id' <> :group_id))), '{}')
        FROM jsonb_each(p.settings -> 'services')))""",
    "p.id = :project_id AND jsonb_typeof(p.settings -> 'services') = 'object'",
)


class Cascade:
    """The removals that one change causes; ``cause`` is its operation and target, such as ``role.delete 40/guard``."""

    def __init__(self, tx: Transaction, actor: AuditActor, cause: str) -> None:
        self._tx = tx
        self._actor = actor
        self._cause = cause

    async def delete_assignments(self, application_id: int, project_id: str | None, name: str) -> None:
        """Deletes all assignments of a role that is deleted. The application is locked."""
        rows = await self._tx.rows(_DELETE_ASSIGNMENTS, application_id=application_id, name=name)
        scope = {"project_id": project_id, "application_id": application_id}
        roles = [dict(row) for row in rows]
        await self._audit("permissions.cascade", f"{application_id}/{name}", {"roles": roles}, {"roles": []}, **scope)

    async def remove_role_from_projects(
        self, application_id: int, name: str, *, generic: bool, grants_only: bool
    ) -> None:
        """Removes a role that was deleted or became protected from memberships and from the settings of projects."""
        if generic:
            await self._audit_members(await self._tx.rows(_DELETE_MEMBERS_WITH_ROLE, name=name))
        path = ["services", str(application_id), "groups"]
        await self._audit_projects(await self._tx.rows(_REMOVE_ROLE_ACTIONS, path=path, name=name, all=not grants_only))

    async def remove_application_from_project(self, application_id: int, project_id: str) -> None:
        """Removes an application that leaves its locked project from the membership and settings of the project."""
        resource = str(application_id)
        members = await self._tx.rows(
            _DELETE_MEMBERS_AT_RESOURCE, project_id=project_id, levels=["applications", "services"], resource=resource
        )
        await self._audit_members(members)
        projects = await self._tx.rows(_REMOVE_APPLICATION, project_id=project_id, application_id=resource)
        await self._audit_projects(projects)

    async def remove_group_from_project(self, group_id: str, project_id: str) -> None:
        """Removes a deleted group from the membership and settings of its locked project."""
        projects = await self._tx.rows(_REMOVE_GROUP_ACTIONS, project_id=project_id, group_id=group_id)
        await self._audit_projects(projects)
        members = await self._tx.rows(
            _DELETE_MEMBERS_AT_RESOURCE, project_id=project_id, levels=["groups"], resource=group_id
        )
        await self._audit_members(members)

    async def _audit_members(self, rows: Sequence[Row]) -> None:
        by_project: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            member = dict(row)
            by_project.setdefault(member.pop("project_id"), []).append(member)
        for project_id, members in sorted(by_project.items()):
            await self._audit(
                "membership.cascade", project_id, {"users": members}, {"users": []}, project_id=project_id
            )

    async def _audit_projects(self, rows: Sequence[Row]) -> None:
        for row in rows:
            before, after = ({"services": row[name].get("services", {})} for name in ("before", "after"))
            await self._audit("project.cascade", row["id"], before, after, project_id=row["id"])

    async def _audit(self, operation: str, target: str, before: Any, after: Any, **scope: Any) -> None:
        if before != after:
            after = after | {"cause": self._cause}
            await trail.write(self._tx, self._actor, operation, target, before, after, **scope)
