"""Who may change whom: nobody changes a user who has more rights over the service than the caller, or makes one.

Otherwise someone who may set passwords could sign in as an administrator, and someone who may set tags or logins could
make the conditions of an administrator's role hold.
"""

from sso.admin.caller import AdminCaller
from sso.core.errors import Forbidden
from sso.db.clock import DatabaseClock
from sso.db.transaction import Transaction
from sso.perm.engine.compiled_application import CompiledApplication, CompiledRole
from sso.perm.engine.conditions import at_any_address, holds
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.engine.records import OwnRecord
from sso.perm.engine.rights import Rights, secret_rights
from sso.perm.engine.user_facts import UserFacts
from sso.perm.stores.facts import FactsStore, read_application, read_facts

_PRIVATE = "private_data."
_NOBODY = UserFacts("")


class ProtectedUsers:
    def __init__(self, facts: FactsStore, clock: DatabaseClock) -> None:
        self._facts = facts
        self._clock = clock

    async def require_manageable(self, caller: AdminCaller, user_id: str) -> None:
        """Raises Forbidden if the user has the role root, or a right over the service, that the caller does not have.

        Roles that are assigned to the user count even if their conditions do not hold at the moment, and roles with a
        condition on the address count as if the user was there.
        """
        if caller.is_root:
            return
        loaded = await self._facts.load(user_id, CENTRAL_APPLICATION_ID, None)
        assert loaded is not None
        self._check(caller, loaded.application, loaded.facts)

    async def require_manageable_after(self, tx: Transaction, caller: AdminCaller, user_id: str) -> None:
        """As above, for the user that the transaction has written: a change gives nobody rights that its author lacks."""
        if caller.is_root:
            return
        application = await read_application(tx, CENTRAL_APPLICATION_ID)
        facts = await read_facts(tx, user_id, CENTRAL_APPLICATION_ID, None)
        assert application is not None
        assert facts is not None
        self._check(caller, application, facts)

    def _check(self, caller: AdminCaller, application: CompiledApplication, facts: PermissionFacts) -> None:
        now = int(self._clock.now())
        rights = Rights(compute_permissions(application, facts, now))
        assigned = {assignment.name for assignment in facts.own.roles}
        roles = [role for role in application.roles.values() if role.name in assigned or _is_met(role, facts.user)]
        if rights.is_root or ROOT_ROLE in assigned or any(role.name == ROOT_ROLE for role in roles):
            raise Forbidden("the role root is required to change a user with the role root")
        rules = {rule.removeprefix(_PRIVATE) for rule in rights.central.rules if rule.startswith(_PRIVATE)}
        for role in roles:
            rules |= _service_rules(role.record.meta.get("private_data", {}))
        if more := sorted(rules - caller.root_rules):
            raise Forbidden(f"{more[0]} is required to change a user who has it")
        # Rights at the central application itself lead to every other right: its roles can be changed with them.
        is_own = facts.user.user_id == caller.actor.user_id
        everyones = secret_rights(application.schema, OwnRecord(), now)
        if not is_own and secret_rights(application.schema, facts.own, now) != everyones:
            raise Forbidden("the role root is required to change a user with rights at the central application")


def _is_met(role: CompiledRole, user: UserFacts) -> bool:
    """Returns whether the user meets the condition of the role at some address, which not everybody does."""
    if role.condition is None:
        return False
    condition = at_any_address(role.condition)
    return holds(condition, user) and not holds(condition, _NOBODY)


def _service_rules(private_data: dict[str, object]) -> set[str]:
    """Returns the rules that a role gives over the whole service: those at the top level."""
    return {name for name, rule in private_data.items() if isinstance(rule, dict) and rule.get("value") is True}
