"""Assignments of roles in the database: the roles of one user, and the users with a role of an application."""

from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

_OF_USER = Statement(
    """SELECT s.application_id, a.name AS application, s.name, s.expired, s.ttl
    FROM role_assignments s JOIN applications a ON a.application_id = s.application_id AND NOT a.removed
    WHERE s.user_id = :user_id ORDER BY s.application_id, s.name LIMIT :limit"""
)
_HOLDERS = """SELECT user_id, name, expired, ttl, (SELECT login FROM users u WHERE u.user_id = s.user_id) AS login
    FROM role_assignments s WHERE application_id = :application_id AND"""
_OF_ALL_ROLES = Statement(
    f"{_HOLDERS} (name, user_id) > (:after_name, :after_user) ORDER BY name, user_id LIMIT :limit"
)
_OF_ONE_ROLE = Statement(f"{_HOLDERS} name = :after_name AND user_id > :after_user ORDER BY name, user_id LIMIT :limit")


async def read_assignments_of(runner: Runner, user_id: str, limit: int) -> list[dict[str, Any]]:
    """Returns the applications, except removed ones, at which the user was given roles, with these roles."""
    applications: dict[int, dict[str, Any]] = {}
    for row in await runner.rows(_OF_USER, user_id=user_id, limit=limit):
        application_id = row["application_id"]
        new = {"application_id": application_id, "name": row["application"], "roles": []}
        roles = applications.setdefault(application_id, new)["roles"]
        roles.append({name: row[name] for name in ("name", "expired", "ttl")})
    return list(applications.values())


async def find_holders(
    runner: Runner, application_id: int, role: str, after_name: str, after_user: str, limit: int
) -> list[Row]:
    """Returns the assignments of one role, or of all roles, after the name and the user, in this order."""
    return await runner.rows(
        _OF_ONE_ROLE if role else _OF_ALL_ROLES,
        application_id=application_id,
        after_name=role or after_name,
        after_user=after_user,
        limit=limit,
    )
