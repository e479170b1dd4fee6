"""The service and every project keep an administrator when an account is deleted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sso.core.language import Text
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.errors import PermissionConflict
from sso.perm.stores.administrators import AdministratorGuard
from sso.perm.stores.locks import lock_application
from sso.personal_data.errors import DeletionRefused

_NOW = Statement("SELECT CAST(floor(extract(epoch FROM clock_timestamp())) AS bigint)")
_PROJECTS = Statement(
    """SELECT DISTINCT p.id, p.title FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
    WHERE m.user_id = :user_id AND m.level = 'project' ORDER BY p.id"""
)
_ROOTS = Statement(
    """SELECT a.user_id FROM role_assignments a JOIN users u USING (user_id)
    WHERE a.application_id = :application_id AND a.name = :name AND NOT u.disabled
        AND (a.expired = 0 OR a.expired > :now OR a.user_id = :user_id)"""
)


@asynccontextmanager
async def keep_administrators(tx: Transaction, user_id: str) -> AsyncIterator[None]:
    """Refuses to disable the user inside this block if the service or a project would lose its last administrator.

    The locks make concurrent deletions, and changes of memberships, wait for each other.
    """
    now: int = await tx.value(_NOW)
    values = {"application_id": CENTRAL_APPLICATION_ID, "name": ROOT_ROLE, "now": now, "user_id": user_id}
    if user_id in {row["user_id"] for row in await tx.rows(_ROOTS, **values)}:
        await lock_application(tx, CENTRAL_APPLICATION_ID)
        if {row["user_id"] for row in await tx.rows(_ROOTS, **values)} == {user_id}:
            raise DeletionRefused(
                Text("This account is the only administrator of the service. Make someone else an administrator first.")
            )
    projects = await tx.rows(_PROJECTS, user_id=user_id)
    guards = [(row["title"], await AdministratorGuard.begin(tx, row["id"], now)) for row in projects]
    yield
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
