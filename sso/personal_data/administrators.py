"""The service and every project keep an administrator when an account is deleted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sso.core.errors import ApiError
from sso.core.language import Text
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.stores.administrators import AdministratorGuard
from sso.perm.stores.locks import lock_application
from sso.perm.stores.root_holders import RootGuard, holds_root

_NOW = Statement("SELECT CAST(floor(extract(epoch FROM clock_timestamp())) AS bigint)")
_PROJECTS = Statement(
    """SELECT DISTINCT p.id, p.title FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
    WHERE m.user_id = :user_id AND m.level = 'project' ORDER BY p.id"""
)
# Also keeps others from assigning a role to the user, which references the row.
_LOCK_USER = Statement("SELECT 1 FROM users WHERE user_id = :user_id FOR UPDATE")


class DeletionRefused(ApiError):
    """The service or a project would be left without an administrator."""

    status = 409
    code = "conflict"

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self.text = text


@asynccontextmanager
async def keep_administrators(tx: Transaction, user_id: str) -> AsyncIterator[None]:
    """Refuses to disable the user inside this block if the service or a project would lose its last administrator.

    The locks make concurrent deletions, and changes of assignments and memberships, wait for each other.
    """
    now: int = await tx.value(_NOW)
    root_guard = await _begin_root_guard(tx, user_id)
    projects = await tx.rows(_PROJECTS, user_id=user_id)
    guards = [(row["title"], await AdministratorGuard.begin(tx, row["id"], now)) for row in projects]
    yield
    if root_guard is not None:
        await _check_root(root_guard)
    for title, guard in guards:
        try:
            await guard.check(await guard.read_after())
        except PermissionConflict:
            raise DeletionRefused(
                Text(
                    "This account is the only administrator of the project %(project)s. "
                    "Make someone else an administrator first.",
                    project=title,
                )
            ) from None


async def _begin_root_guard(tx: Transaction, user_id: str) -> RootGuard | None:
    """Returns None if the user is no administrator of the service, and does not become one meanwhile."""
    await tx.value(_LOCK_USER, user_id=user_id)
    if not await holds_root(tx, user_id):
        return None
    await lock_application(tx, CENTRAL_APPLICATION_ID)
    return await RootGuard.begin(tx)


async def _check_root(guard: RootGuard) -> None:
    try:
        await guard.check()
    except PermissionConflict:
        raise DeletionRefused(
            Text("This account is the only administrator of the service. Make someone else an administrator first.")
        ) from None
