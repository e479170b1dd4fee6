"""Assigns the role of an administrator of the whole service."""

from sso.db.transaction import Transaction
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.engine.records import Assignment
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.locks import lock_application
from sso.perm.stores.roles import read_roles
from sso.perm.stores.user_data import save_record


async def assign_root(tx: Transaction, actor: AuditActor, user_id: str) -> None:
    """Assigns the role root to a new user, who has no other roles."""
    application = await lock_application(tx, CENTRAL_APPLICATION_ID)
    known = await read_roles(tx, CENTRAL_APPLICATION_ID)
    await save_record(tx, actor, user_id, application, known, {}, (Assignment(ROOT_ROLE, 0, 0),))
