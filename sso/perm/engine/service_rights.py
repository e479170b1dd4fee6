"""The rights over the whole service that a user has at the central application, or may get there without a change."""

from collections.abc import Mapping

from msgspec import Struct

from sso.perm.engine.address_sets import AddressSets
from sso.perm.engine.compiled_application import CompiledApplication, CompiledRole
from sso.perm.engine.effective_permissions import own_entries
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.records import NO_RECORD
from sso.perm.engine.reserved_names import ROOT_ROLE
from sso.perm.engine.rules import without_section
from sso.perm.engine.secret_rights import secret_rights
from sso.perm.engine.time_windows import TimeBound
from sso.perm.engine.user_facts import UserFacts

_USER_WITHOUT_ATTRIBUTES = PermissionFacts(UserFacts(""))
_PRIVATE = "private_data."


class ServiceRights(Struct, frozen=True):
    is_root: bool
    rules: frozenset[str]
    # The user has rights in secret_data of the central application that not every user has, and could change its roles.
    over_central: bool


def compute_service_rights(central: CompiledApplication, facts: PermissionFacts, now: int) -> ServiceRights:
    """Returns the rights that the user has at some address at which a user without attributes does not have them.

    The user has them at some time, and the other user all the time. Roles that are assigned to the user count even if
    their conditions do not hold at the moment.
    """
    if facts.user.cannot_administer:
        return ServiceRights(is_root=False, rules=frozenset(), over_central=False)
    conditions = [role.condition for role in central.roles.values() if role.condition is not None]
    sets = AddressSets(conditions)
    holder = _Holder(central, facts, now, sets, TimeBound.SOMETIMES)
    anyone = _Holder(central, _USER_WITHOUT_ATTRIBUTES, now, sets, TimeBound.ALWAYS)
    everyones = anyone.rules()
    rules = {path for path, addresses in holder.rules().items() if addresses & ~everyones.get(path, 0)}
    everyones_secret = secret_rights(central.schema, NO_RECORD, now)
    return ServiceRights(
        bool(holder.root() & ~anyone.root()),
        frozenset(map(without_section, rules)),
        secret_rights(central.schema, facts.own, now) != everyones_secret,
    )


class _Holder:
    """A user, and the sets of addresses at which the user has roles and rules, at some time or all the time.

    See `AddressSets`.
    """

    def __init__(
        self, central: CompiledApplication, facts: PermissionFacts, now: int, sets: AddressSets, bound: TimeBound
    ) -> None:
        self._central = central
        self._facts = facts
        self._now = now
        self._sets = sets
        self._bound = bound
        self._assigned = {item.name for item in facts.own.roles if not item.ended(now)}

    def root(self) -> int:
        role = self._central.roles.get(ROOT_ROLE)
        return 0 if role is None else self._may_apply(role)

    def rules(self) -> Mapping[str, int]:
        """Returns the addresses at which the user has each rule in ``private_data``, by path."""
        given: dict[str, int] = {}
        denied: dict[str, int] = {}
        for role in self._central.roles.values():
            denies, may_apply = self._applies(role, self._bound.opposite), self._may_apply(role)
            for rule in role.rules if may_apply or denies else ():
                if rule.listed:
                    given[rule.path] = given.get(rule.path, 0) | may_apply
                else:
                    denied[rule.path] = denied.get(rule.path, 0) | denies
        for path in self._central.schema_rules:  # a role with a false value overrides the schema
            given[path] = given.get(path, 0) | (self._sets.everywhere & ~denied.get(path, 0))
        for entry in own_entries(self._facts.own, self._now):
            given[entry.path] = self._sets.everywhere if entry.listed else 0
        return {path: addresses for path, addresses in given.items() if path.startswith(_PRIVATE)}

    def _applies(self, role: CompiledRole, bound: TimeBound) -> int:
        if role.is_default or (role.condition is None and role.name in self._assigned):
            return self._sets.everywhere
        return 0 if role.condition is None else self._sets.where(role.condition, self._facts.user, bound)

    def _may_apply(self, role: CompiledRole) -> int:
        if role.name in self._assigned:
            return self._sets.everywhere
        addresses = self._applies(role, self._bound)
        if role.windows and role.condition is not None:  # what all users get at the same times is no right of this one
            addresses &= ~self._sets.where(role.condition, _USER_WITHOUT_ATTRIBUTES.user, self._bound)
        return addresses
