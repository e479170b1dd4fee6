"""What a deletion took away besides the record itself: who had a role, and what a project gave.

The history of permission data has these rows as they were before the transaction of the deletion, for as long as the
audit trail has its entry.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.field_errors import FieldError
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.input.membership import member_role_names
from sso.perm.stores.compilation import read_application
from sso.perm.stores.project_state import read_resources
from sso.perm.stores.projects import read_project, save_project
from sso.perm.stores.user_limits import read_user_limits, within_user_limits

# The first transaction since the entry after which the row did not exist.
_FIND = Statement(
    """SELECT v.commit_id FROM audit a
        JOIN permission_versions v ON v.kind = :kind AND v.owner = :owner AND v.key = :key AND v.image IS NOT NULL
        JOIN permission_commits c ON c.id = v.commit_id AND c.at >= a.at
    WHERE a.id = :entry_id AND a.operation = :operation AND a.target = :target AND coalesce((
        SELECT n.image IS NULL FROM permission_versions n
        WHERE n.kind = v.kind AND n.owner = v.owner AND n.key = v.key AND n.commit_id > v.commit_id
        ORDER BY n.commit_id LIMIT 1), true)
    ORDER BY v.commit_id LIMIT 1"""
)
# The last transaction in which the application was not removed before.
_FIND_REMOVAL = Statement(
    """SELECT commit_id FROM permission_versions
    WHERE kind = 'applications' AND owner = CAST(CAST(:application_id AS int) AS text) AND key = ''
        AND image ->> 'removed' = 'false'
    ORDER BY commit_id DESC LIMIT 1"""
)
_GIVE_BACK = Statement(
    """INSERT INTO role_assignments (user_id, application_id, name, expired, ttl, position)
    SELECT t.user_id, t.application_id, t.name, t.expired, t.ttl, t.position
    FROM permission_versions v, jsonb_populate_record(CAST(NULL AS role_assignments), v.image) t
        JOIN users u ON u.user_id = t.user_id
    WHERE v.commit_id = :commit_id AND v.kind = 'role_assignments' AND t.application_id = :application_id
        AND t.name = :name
    ON CONFLICT DO NOTHING RETURNING user_id, name, expired, ttl"""
)
_PROJECT_BEFORE = Statement(
    """SELECT image -> 'settings' AS settings FROM permission_versions
    WHERE commit_id = :commit_id AND kind = 'projects' AND owner = :project_id AND key = ''"""
)
_MEMBERS_BEFORE = """FROM permission_versions v, jsonb_populate_record(CAST(NULL AS project_members), v.image) t
        JOIN users u ON u.user_id = t.user_id
        JOIN roles r ON r.application_id = 1 AND r.name = t.role
    WHERE v.commit_id = :commit_id AND v.kind = 'project_members' AND t.project_id = :project_id
        AND t.level = ANY(CAST(:levels AS text[])) AND t.resource = :resource"""
_ROLES_OF_MEMBERS = Statement(f"SELECT DISTINCT t.role {_MEMBERS_BEFORE}")
_PUT_MEMBERS = Statement(
    f"""INSERT INTO project_members (project_id, user_id, level, resource, role, expired, ttl, position)
    SELECT t.project_id, t.user_id, t.level, t.resource, t.role, t.expired, t.ttl, t.position {_MEMBERS_BEFORE}
        AND t.role = ANY(CAST(:roles AS text[]))
    ON CONFLICT DO NOTHING RETURNING user_id, level, resource, role"""
)


class Deletion(Struct, frozen=True):
    """A deletion of the past, whose entry has the cause of what is restored."""

    tx: Transaction
    actor: AuditActor
    commit_id: int
    cause: str

    @classmethod
    async def find(
        cls, tx: Transaction, actor: AuditActor, entry_id: int, operation: str, target: str, row: tuple[str, str, str]
    ) -> "Deletion":
        """``row``: the kind, owner and key of the deleted row in the history. Raises FieldError."""
        kind, owner, key = row
        values = {"entry_id": entry_id, "operation": operation, "target": target}
        commit_id = await tx.value(_FIND, **values, kind=kind, owner=owner, key=key)
        if commit_id is None:
            raise FieldError(("undo_of",), f"must be the id of an audit entry {operation} of this record", status=409)
        return cls(tx, actor, commit_id, f"undo of {operation} {target}")

    @classmethod
    async def find_removal(cls, tx: Transaction, actor: AuditActor, application_id: int) -> "Deletion | None":
        """Returns None if the history does not reach back so far."""
        commit_id = await tx.value(_FIND_REMOVAL, application_id=application_id)
        cause = f"application.restore {application_id}"
        return None if commit_id is None else cls(tx, actor, commit_id, cause)

    async def restore_assignments(self, application: Row, name: str, user_limit: int) -> None:
        """Gives a role to the users who had it, until the same time. Users who were erased since are left out."""
        application_id, project_id = application["application_id"], application["project_id"]
        async with within_user_limits(self.tx, application_id, {name: user_limit} if user_limit else {}):
            rows = await self.tx.rows(_GIVE_BACK, commit_id=self.commit_id, application_id=application_id, name=name)
        await self._audit(
            "permissions.restore",
            f"{application_id}/{name}",
            {"roles": [dict(row) for row in rows]},
            {"roles": []},
            project_id=project_id,
            application_id=application_id,
        )

    async def restore_actions(self, project_id: str, was_removed: Callable[[str, dict[str, Any]], bool]) -> None:
        """Restores the roles that a locked project gave to groups, or blocked. ``was_removed`` selects them.

        What names a group, application or role that does not exist now is left out, and a role that a project may not
        grant now.
        """
        before = await self.tx.row(_PROJECT_BEFORE, commit_id=self.commit_id, project_id=project_id)
        project, resources = await read_project(self.tx, project_id), await read_resources(self.tx, project_id)
        if before is None or project is None:
            return
        services = {key: {**service} for key, service in project["settings"].get("services", {}).items()}
        for key, service in before["settings"].get("services", {}).items():
            application = await read_application(self.tx, int(key)) if int(key) in resources.applications else None
            if application is None:
                continue
            present = services.get(key, {}).get("groups", [])
            removed = [
                action
                for action in service.get("groups", [])
                if was_removed(key, action)
                and action not in present
                and action["group_id"] in resources.groups
                and _is_possible(action, application)
            ]
            if removed:
                services[key] = {**services.get(key, {}), "groups": [*present, *removed]}
        await save_project(self.tx, self.actor, project_id, {"settings": {"services": services}})

    async def restore_members(self, project_id: str, levels: list[str], resource: str) -> None:
        """Restores the roles that members of a locked project had at a resource, as far as they may have them now."""
        values = {"commit_id": self.commit_id, "project_id": project_id, "levels": levels, "resource": resource}
        central = await read_application(self.tx, CENTRAL_APPLICATION_ID)
        assert central is not None
        known = set(member_role_names(central))
        roles = [row["role"] for row in await self.tx.rows(_ROLES_OF_MEMBERS, **values) if row["role"] in known]
        async with within_user_limits(self.tx, CENTRAL_APPLICATION_ID, await read_user_limits(self.tx, roles)):
            members = [dict(row) for row in await self.tx.rows(_PUT_MEMBERS, **values, roles=roles)]
        await self._audit("membership.restore", project_id, {"users": members}, {"users": []}, project_id=project_id)

    async def _audit(self, operation: str, target: str, restored: Any, nothing: Any, **scope: Any) -> None:
        if restored != nothing:
            after = restored | {"cause": self.cause}
            await trail.write(self.tx, self.actor, operation, target, nothing, after, **scope)


def _is_possible(action: dict[str, Any], application: CompiledApplication) -> bool:
    """Returns whether a project may give the role of the action to a group, or block it."""
    role = application.roles.get(action["role"])
    return role is not None and (action["action"] != "grant" or assignable_through_project(role, generic=False))
