"""/api/admin/users/{user_id}/assignments: the roles that a user was given, at applications and in projects."""

from typing import Any

from sso.admin.request import AdminRequest, AdminResponse, AdminRoute
from sso.admin.rights import AdminRight
from sso.admin.users import UserResource
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.stores.memberships import read_memberships_of

MAX_ASSIGNMENTS = 1000
_AT_APPLICATIONS = Statement(
    """SELECT s.application_id, a.name AS application, s.name, s.expired, s.ttl
    FROM role_assignments s JOIN applications a ON a.application_id = s.application_id AND NOT a.removed
    WHERE s.user_id = :user_id ORDER BY s.application_id, s.name LIMIT :limit"""
)


class UserAssignments:
    def __init__(self, database: Database, users: UserResource) -> None:
        self._database = database
        self._users = users

    async def get(self, request: AdminRequest) -> AdminResponse:
        """The roles that were given to the user: `applications` and `projects`. Conditions and groups may add more."""
        user = await self._users.require(request.path["user_id"])
        rows = await self._database.rows(_AT_APPLICATIONS, user_id=user.user_id, limit=MAX_ASSIGNMENTS)
        applications: dict[int, dict[str, Any]] = {}
        for row in rows:
            application = applications.setdefault(
                row["application_id"],
                {"application_id": row["application_id"], "name": row["application"], "roles": []},
            )
            application["roles"].append({name: row[name] for name in ("name", "expired", "ttl")})
        projects = await read_memberships_of(self._database, user.user_id, MAX_ASSIGNMENTS)
        return AdminResponse({"data": {"applications": list(applications.values()), "projects": projects}})


def user_assignment_routes(assignments: UserAssignments) -> tuple[AdminRoute, ...]:
    return (AdminRoute("GET", "/users/<user_id>/assignments", AdminRight.VIEW_USERS, assignments.get),)
