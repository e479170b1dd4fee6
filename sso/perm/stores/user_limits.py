"""``user_limit`` of generic roles: how many users have one, by assignment or through memberships."""

from collections.abc import Iterable
from typing import NamedTuple

from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.stores import roles as role_store

_LIMITED = Statement(
    """SELECT name, user_limit FROM roles WHERE application_id = :application_id AND user_limit > 0
    AND name = ANY(CAST(:names AS text[])) ORDER BY name"""
)
# Memberships of different projects are saved at the same time; those that give a limited role wait for each other.
_LOCK = Statement("SELECT pg_advisory_xact_lock(hashtextextended('user_limit:' || :name, 0))")


class LimitedRole(NamedTuple):
    name: str
    user_limit: int
    holders: int


async def count_holders(tx: Transaction, names: Iterable[str]) -> list[LimitedRole]:
    """The roles among these that have a limit, with their users. The counts hold until the transaction ends: the
    central application must be locked, at least against changes."""
    found = []
    for row in await tx.rows(_LIMITED, application_id=CENTRAL_APPLICATION_ID, names=list(names)):
        await tx.value(_LOCK, name=row["name"])
        holders = await role_store.holders(tx, CENTRAL_APPLICATION_ID, row["name"])
        found.append(LimitedRole(row["name"], row["user_limit"], holders))
    return found


async def require_limits(tx: Transaction, counted: Iterable[LimitedRole]) -> None:
    """Refuse what added users to a role beyond its limit since they were counted."""
    for role in counted:
        holders = await role_store.holders(tx, CENTRAL_APPLICATION_ID, role.name)
        if holders > max(role.user_limit, role.holders):
            raise PermissionConflict(f"roles: {role.name} can have at most {role.user_limit} users")
