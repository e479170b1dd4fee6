"""``user_limit`` of roles: the maximum number of users with a role, by assignment or by membership."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from sso.core.field_errors import FieldError
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID

_LIMITED = Statement(
    """SELECT name, user_limit FROM roles WHERE application_id = :application_id AND user_limit > 0
    AND name = ANY(CAST(:names AS text[]))"""
)
# Memberships of different projects are saved concurrently; saves that give the same limited role run one by one.
_LOCK = Statement("SELECT pg_advisory_xact_lock(hashtextextended('user_limit:' || :name, 0))")
# Generic roles of the central application are also given in memberships.
_COUNT_HOLDERS = Statement(
    """SELECT count(*) FROM (
        SELECT user_id FROM role_assignments WHERE application_id = :application_id AND name = :name
            AND (ttl > 0 OR expired = 0 OR expired > extract(epoch FROM now()))
        UNION
        SELECT m.user_id FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
        WHERE :application_id = 1 AND m.role = :name
            AND (m.ttl > 0 OR m.expired = 0 OR m.expired > extract(epoch FROM now()))) AS holders"""
)


async def read_user_limits(runner: Runner, names: Iterable[str]) -> dict[str, int]:
    """Returns the limits of those generic roles among ``names`` that have one."""
    rows = await runner.rows(_LIMITED, application_id=CENTRAL_APPLICATION_ID, names=list(names))
    return {row["name"]: row["user_limit"] for row in rows}


@asynccontextmanager
async def within_user_limits(tx: Transaction, application_id: int, limits: Mapping[str, int]) -> AsyncIterator[None]:
    """Raises FieldError if one of the roles gets users beyond its limit inside this block.

    The caller has locked the application, or shares the lock of the central one. The numbers of users cannot change
    until the transaction ends.
    """
    before = {}
    for name in sorted(limits):
        if application_id == CENTRAL_APPLICATION_ID:
            await tx.value(_LOCK, name=name)
        before[name] = await _count_holders(tx, application_id, name)
    yield
    for name, limit in limits.items():
        if await _count_holders(tx, application_id, name) > max(limit, before[name]):
            raise FieldError(("roles",), f"{name} can have at most {limit} users", status=409)


async def _count_holders(runner: Runner, application_id: int, name: str) -> int:
    """Returns how many users have an unexpired assignment of the role."""
    count: int = await runner.value(_COUNT_HOLDERS, application_id=application_id, name=name)
    return count
