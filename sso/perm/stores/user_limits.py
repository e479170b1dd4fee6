"""``user_limit`` of generic roles: the maximum number of users with a role, by assignment or by membership."""

from collections.abc import Iterable
from typing import NamedTuple

from sso.core.field_errors import FieldError
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores import roles as role_store

_LIMITED = Statement(
    """SELECT name, user_limit FROM roles WHERE application_id = :application_id AND user_limit > 0
    AND name = ANY(CAST(:names AS text[])) ORDER BY name"""
)
# Memberships of different projects are saved concurrently; saves that give the same limited role run one by one.
_LOCK = Statement("SELECT pg_advisory_xact_lock(hashtextextended('user_limit:' || :name, 0))")


class LimitedRole(NamedTuple):
    name: str
    user_limit: int
    holders: int


async def lock_limited_roles(tx: Transaction, names: Iterable[str]) -> list[LimitedRole]:
    """The roles among ``names`` that have a limit, each with its number of users.

    They are locked: only this transaction can change the numbers until it ends. The caller holds at least a share lock
    on the central application.
    """
    limited_roles = []
    for row in await tx.rows(_LIMITED, application_id=CENTRAL_APPLICATION_ID, names=list(names)):
        await tx.value(_LOCK, name=row["name"])
        holders = await role_store.count_holders(tx, CENTRAL_APPLICATION_ID, row["name"])
        limited_roles.append(LimitedRole(row["name"], row["user_limit"], holders))
    return limited_roles


async def require_limits(tx: Transaction, limited_roles: Iterable[LimitedRole]) -> None:
    """Raise FieldError if a role got users beyond its limit since `lock_limited_roles`."""
    for role in limited_roles:
        holders = await role_store.count_holders(tx, CENTRAL_APPLICATION_ID, role.name)
        if holders > max(role.user_limit, role.holders):
            raise FieldError(("roles",), f"{role.name} can have at most {role.user_limit} users", status=409)
