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
from sso.db.transaction import Transaction
from sso.perm.changes.scope import Scope
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.locks import (
    applications_of_projects,
    lock_applications,
    lock_conditions,
    lock_projects,
    share_lock_applications,
    share_lock_conditions,
)


async def lock_scope(tx: Transaction, scope: Scope) -> None:
    """Locks everything that the scope names, in the order of `sso.perm.stores.locks`."""
    exclusive = scope.changed_applications
    if exclusive or scope.projects:
        await (lock_conditions if scope.accounts else share_lock_conditions)(tx)
    if not scope.projects:
        await lock_applications(tx, exclusive)
        return
    of_projects = await applications_of_projects(tx, scope.projects)
    shared = ({CENTRAL_APPLICATION_ID} | of_projects | scope.read_applications) - exclusive
    for is_exclusive, ids in _runs(exclusive, shared):
        await (lock_applications if is_exclusive else share_lock_applications)(tx, ids)
    await lock_projects(tx, scope.projects)
    # An application may have moved into a project before the project was locked.
    if not await applications_of_projects(tx, scope.projects) <= exclusive | shared:
        raise TransactionConflict("an application was moved meanwhile")


def _runs(exclusive: Collection[int], shared: Collection[int]) -> list[tuple[bool, list[int]]]:
    """Returns all ids in ascending order, in as few statements as that allows."""
    runs: list[tuple[bool, list[int]]] = []
    for application_id in sorted({*exclusive, *shared}):
        is_exclusive = application_id in exclusive
        if not runs or runs[-1][0] != is_exclusive:
            runs.append((is_exclusive, []))
        runs[-1][1].append(application_id)
    return runs
