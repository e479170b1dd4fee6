"""Who may look at the accounts of players, and whose account nobody may look at."""

from sso.accounts.model import User
from sso.core.net import Address
from sso.db.database import Database
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rights import Rights
from sso.perm.login_rules import LoginRules
from sso.perm.stores.builtin_roles import ROOT_RULES
from sso.perm.stores.facts import read_service_rights
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.user_data import was_given_rights

RIGHT = "can_impersonate_users"
WRITE_RIGHT = "can_manage_users"  # to change something in place of the player


class PermissionsOfImpersonation:
    """Implements `sso.accounts.impersonation.operations.ImpersonationRights`."""

    def __init__(self, database: Database, facts: FactsReader, login_rules: LoginRules) -> None:
        self._database = database
        self._facts = facts
        self._login_rules = login_rules

    async def may_impersonate(self, user_id: str, address: Address, *, may_write: bool) -> bool:
        central = await self._facts.load(user_id, CENTRAL_APPLICATION_ID, address)
        assert central is not None  # it is built in
        rights = Rights(central.effective(int(self._database.clock.now())))
        needed = (RIGHT, WRITE_RIGHT) if may_write else (RIGHT,)
        return rights.is_root or all(map(rights.has_root_rule, needed))

    async def is_protected(self, user: User, address: Address | None) -> bool:
        """A role that counts at another address only, or not yet, protects its user as well."""
        if await was_given_rights(self._database, user.user_id):
            return True
        rights = await read_service_rights(self._database, user.user_id, int(self._database.clock.now()))
        if rights.is_root or rights.over_central or not rights.rules.isdisjoint(ROOT_RULES):
            return True
        return await self._login_rules.is_administrator(user, address)
