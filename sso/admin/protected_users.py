"""Protects users from callers with fewer rights over the service.

Otherwise a caller who may set passwords could sign in as an administrator.
"""

from sso.admin.caller import AdminCaller
from sso.core.errors import Forbidden
from sso.db.clock import DatabaseClock
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.engine.rights import Rights
from sso.perm.stores.facts import FactsStore


class ProtectedUsers:
    def __init__(self, facts: FactsStore, clock: DatabaseClock) -> None:
        self._facts = facts
        self._clock = clock

    async def require_manageable(self, caller: AdminCaller, user_id: str) -> None:
        """Raises Forbidden if the user has the role root, or a right over the service, that the caller does not have.

        Roles that are assigned to the user count even if their conditions do not hold at the moment.
        """
        if caller.is_root:
            return
        loaded = await self._facts.load(user_id, CENTRAL_APPLICATION_ID, None)
        assert loaded is not None
        rights = Rights(loaded.effective(int(self._clock.now())))
        assigned = {assignment.name for assignment in loaded.facts.own.roles}
        if rights.is_root or ROOT_ROLE in assigned:
            raise Forbidden("the role root is required to change a user with the role root")
        rules = set(rights.root_rules)
        for name in assigned & loaded.application.roles.keys():
            rules |= _service_rules(loaded.application.roles[name].record.meta.get("private_data", {}))
        if missing := sorted(rules - caller.root_rules):
            raise Forbidden(f"{missing[0]} is required to change a user who has it")


def _service_rules(private_data: dict[str, object]) -> set[str]:
    """Returns the rules that a role gives over the whole service: those at the top level."""
    return {name for name, rule in private_data.items() if isinstance(rule, dict) and rule.get("value") is True}
