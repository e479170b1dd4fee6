"""The row locks of a write, taken before the state is read that the write is compared with.

Two writes that could change the permissions at one application never run at the same time:

* A write of the application, its roles, or a record of a user there holds the exclusive lock of its row.
* A write of a project, its groups or its membership holds the shared locks of the project's applications and of the
  central application, and the exclusive lock of the project. Two of them that both concern an application belong to
  the same project.
* A write of attributes of users holds the exclusive locks of the applications where these attributes matter. It takes
  them after the write, when it knows them, and before it reads the permissions there. So that no condition can appear
  meanwhile that it does not see, and whose write does not see the new attributes, writes of applications and projects
  share a lock of all conditions, and a write that has changed attributes takes it exclusively.

So the permissions that a write computes, and with which it checks the assertions of an application, are those that
are valid when it commits.
"""

from collections.abc import Collection

from sso.db.errors import TransactionConflict
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.scope import Scope
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.locks import lock_projects

_SHARE_CONDITIONS = Statement("SELECT pg_advisory_xact_lock_shared(hashtextextended('permission conditions', 0))")
_LOCK_CONDITIONS = Statement("SELECT pg_advisory_xact_lock(hashtextextended('permission conditions', 0))")
_OF_PROJECTS = Statement("SELECT application_id FROM applications WHERE project_id = ANY(CAST(:ids AS text[]))")
_LOCK = Statement(
    """SELECT application_id, assertions FROM applications WHERE application_id = ANY(CAST(:ids AS int[]))
    ORDER BY application_id FOR UPDATE"""
)
_SHARE = Statement(
    """SELECT 1 FROM applications WHERE application_id = ANY(CAST(:ids AS int[])) ORDER BY application_id FOR SHARE"""
)


async def lock_scope(tx: Transaction, scope: Scope) -> None:
    """Locks everything that the scope names, in the order of `sso.perm.stores.locks`."""
    exclusive = scope.changed_applications
    if exclusive or scope.projects:
        await tx.value(_LOCK_CONDITIONS if scope.accounts else _SHARE_CONDITIONS)
    if not scope.projects:
        await lock_applications(tx, exclusive)
        return
    of_projects = await _applications_of(tx, scope.projects)
    shared = ({CENTRAL_APPLICATION_ID} | of_projects | scope.read_applications) - exclusive
    for is_exclusive, ids in _runs(exclusive, shared):
        await tx.rows(_LOCK if is_exclusive else _SHARE, ids=ids)
    await lock_projects(tx, scope.projects)
    # An application may have moved into a project before the project was locked.
    if not await _applications_of(tx, scope.projects) <= exclusive | shared:
        raise TransactionConflict("an application was moved meanwhile")


async def lock_conditions(tx: Transaction) -> None:
    """Keeps all conditions unchanged until the transaction ends, because attributes of users were changed."""
    await tx.value(_LOCK_CONDITIONS)


async def lock_applications(tx: Transaction, application_ids: Collection[int]) -> dict[int, list[str]]:
    """Returns the assertions of the applications."""
    rows = await tx.rows(_LOCK, ids=sorted(application_ids)) if application_ids else []
    return {row["application_id"]: row["assertions"] for row in rows}


async def _applications_of(tx: Transaction, project_ids: Collection[str]) -> frozenset[int]:
    return frozenset(row["application_id"] for row in await tx.rows(_OF_PROJECTS, ids=list(project_ids)))


def _runs(exclusive: Collection[int], shared: Collection[int]) -> list[tuple[bool, list[int]]]:
    """Returns all ids in ascending order, in as few statements as that allows."""
    runs: list[tuple[bool, list[int]]] = []
    for application_id in sorted({*exclusive, *shared}):
        is_exclusive = application_id in exclusive
        if not runs or runs[-1][0] != is_exclusive:
            runs.append((is_exclusive, []))
        runs[-1][1].append(application_id)
    return runs
