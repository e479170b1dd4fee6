"""Protects users from callers with fewer rights over the service, and the service from users with more of them.

Otherwise a caller who may set passwords could sign in as an administrator, and a caller who may set tags and logins
could make the condition of an administrator's role hold.
"""

from sso.admin.caller import AdminCaller
from sso.core.errors import Forbidden
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.stores.facts import read_service_rights


class ProtectedUsers:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def require_manageable(self, caller: AdminCaller, user_id: str, tx: Transaction | None = None) -> None:
        """Raises Forbidden if the user has the role root, or a right over the service, that the caller does not have.

        With a transaction, the user is judged as the transaction has changed it.
        """
        if caller.is_root:
            return
        rights = await read_service_rights(tx or self._database, user_id, int(self._database.clock.now()))
        if rights.is_root:
            raise Forbidden("the role root is required to change a user with the role root")
        if missing := sorted(rights.rules - caller.root_rules):
            raise Forbidden(f"{missing[0]} is required to change a user who has it")
        if rights.over_central and user_id != caller.actor.user_id:
            raise Forbidden("the role root is required to change a user with rights at the central application")
