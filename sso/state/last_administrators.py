"""A document neither disables nor removes the last administrator of the service, nor disables that of a project.

The document is judged as a whole: it may replace an administrator by another one. With ``memberships``, an operator may
still leave a project without one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sso.accounts.model import login_key
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.administrators import keep_administrators_of
from sso.perm.stores.locks import lock_application_if_exists
from sso.perm.stores.root_holders import keep_root_holder
from sso.state.document import Document

_PROJECTS = Statement(
    """SELECT DISTINCT m.project_id FROM project_members m JOIN users u USING (user_id)
        JOIN projects p ON p.id = m.project_id AND NOT p.removed
    WHERE m.level = 'project' AND NOT u.disabled
        AND (u.user_id = ANY(CAST(:user_ids AS text[])) OR u.login_key = ANY(CAST(:login_keys AS text[])))"""
)


@asynccontextmanager
async def keep_last_administrators(tx: Transaction, document: Document) -> AsyncIterator[None]:
    """Raises PermissionConflict if the service, or a project, loses its last administrator inside this block."""
    disabled = [user for user in document.users if user.disabled]
    assigns_centrally = any(
        part.application_id == CENTRAL_APPLICATION_ID and part.roles is not None for part in document.permissions
    )
    if not (disabled or assigns_centrally):
        yield
        return
    if await lock_application_if_exists(tx, CENTRAL_APPLICATION_ID) is None:  # a new database has no administrators
        yield
        return
    rows = await tx.rows(
        _PROJECTS,
        user_ids=[user.user_id for user in disabled if user.user_id],
        login_keys=[login_key(user.login) for user in disabled],
    )
    async with keep_root_holder(tx), keep_administrators_of(tx, [row["project_id"] for row in rows]):
        yield
