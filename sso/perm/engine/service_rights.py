"""The rights over the whole service that a user has at the central application, or may get there without a change."""

from dataclasses import dataclass

from sso.perm.engine.compiled_application import CompiledApplication, CompiledRole
from sso.perm.engine.conditions import at_any_address, holds
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.names import ROOT_ROLE
from sso.perm.engine.records import NO_RECORD
from sso.perm.engine.rights import Rights, secret_rights
from sso.perm.engine.user_facts import UserFacts

_NOBODY = UserFacts("")


@dataclass(frozen=True)
class ServiceRights:
    is_root: bool
    rules: frozenset[str]
    # The user has rights in secret_data of the central application that not every user has, and could change its roles.
    over_central: bool


def compute_service_rights(central: CompiledApplication, facts: PermissionFacts, now: int) -> ServiceRights:
    """Returns the rights of the user, including those that the user gets when a condition holds.

    Roles that are assigned to the user count even if their conditions do not hold at the moment. Roles with a condition
    on the address count as if the user was there.
    """
    rights = Rights(compute_permissions(central, facts, now))
    assigned = {assignment.name for assignment in facts.own.roles}
    roles = [role for role in central.roles.values() if role.name in assigned or _is_met(role, facts.user)]
    rules = set(rights.root_rules)
    for role in roles:
        rules |= _service_rules(role.record.meta.get("private_data", {}))
    is_root = rights.is_root or ROOT_ROLE in assigned or any(role.name == ROOT_ROLE for role in roles)
    everyones = secret_rights(central.schema, NO_RECORD, now)
    return ServiceRights(is_root, frozenset(rules), secret_rights(central.schema, facts.own, now) != everyones)


def _is_met(role: CompiledRole, user: UserFacts) -> bool:
    """Returns whether the user meets the condition of the role at some address, which not everybody does."""
    if role.condition is None:
        return False
    condition = at_any_address(role.condition)
    return holds(condition, user) and not holds(condition, _NOBODY)


def _service_rules(private_data: dict[str, object]) -> set[str]:
    """Returns the rules that a role gives over the whole service: those at the top level."""
    return {name for name, rule in private_data.items() if isinstance(rule, dict) and rule.get("value") is True}
