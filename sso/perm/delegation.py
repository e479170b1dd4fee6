"""The one check of every write that gives or takes rights in a project: nobody hands out what they do not hold.

It compares the project before and after the write, inside the transaction of the write, so it does not matter which
endpoint changed what. What the operator does (``sso apply``, the command line) does not pass through here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sso.core.errors import Forbidden
from sso.db.transaction import Transaction
from sso.perm.caller import Caller
from sso.perm.engine import rules
from sso.perm.engine.compiled_application import CompiledApplication, CompiledRole
from sso.perm.engine.effective_permissions import EffectivePermissions, compute_permissions
from sso.perm.engine.held_roles import ASSIGNMENT
from sso.perm.engine.held_rules import HeldRule, HeldRules, assignment_end, covers
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.project_exclusion import project_exclusion
from sso.perm.engine.rights import ALL, Rights, secret_rights
from sso.perm.engine.rules import RuleSource
from sso.perm.engine.user_facts import UserFacts
from sso.perm.errors import PermissionConflict
from sso.perm.stores import roles as role_store
from sso.perm.stores.administrators import (
    NONE_LASTING,
    NONE_LEFT,
    Administration,
    administers,
    administration,
    candidates,
)
from sso.perm.stores.facts import read_application, read_facts
from sso.perm.stores.project_state import (
    KnownUser,
    Member,
    ProjectState,
    belongings,
    lock_project,
    read_people,
    read_states,
)

NOT_HELD = "role %s: only those who hold all its rules may give it or take it away"
NOT_GRANTABLE = "this gives or takes away a role of an application that you do not hold there"  # its name may be hidden
SHUT_OUT = "this changes the access of members with roles that you do not hold"


@dataclass
class Delegation:
    """A write of a caller to a project. ``begin`` before it, ``judge`` after it, in the same transaction."""

    tx: Transaction
    caller: Caller
    project_id: str
    central: CompiledApplication
    rights: Rights
    holdings: HeldRules
    before: ProjectState
    administered: Administration = Administration.NONE  # before the write
    judged: dict[tuple[str, str, str, int | None], bool] = field(default_factory=dict)
    grantable: dict[int, frozenset[str]] = field(default_factory=dict)  # roles, by application
    inside: dict[str, bool] = field(default_factory=dict)  # members with roles that the caller lacks: are they let in?

    @classmethod
    async def begin(
        cls, tx: Transaction, caller: Caller, project_id: str, applications: Iterable[int] = ()
    ) -> "Delegation":
        """Lock the project. Applications whose roles the write names are locked first, as everywhere."""
        await role_store.keep_applications(tx, {CENTRAL_APPLICATION_ID, *applications})
        if (await lock_project(tx, project_id))["removed"]:
            raise Forbidden("removed")
        central = await read_application(tx, CENTRAL_APPLICATION_ID)
        facts = await read_facts(tx, caller.user_id, CENTRAL_APPLICATION_ID, caller.own_address)
        assert central is not None
        assert facts is not None
        rights = Rights(compute_permissions(central, facts, caller.now))
        access = next((item for item in rights.central.projects if item.project.id == project_id), None)
        before = (await read_states(tx, [project_id]))[project_id]
        found = cls(tx, caller, project_id, central, rights, HeldRules(central, access), before)
        await found._look(applications)
        return found

    async def _look(self, applications: Iterable[int]) -> None:
        """Read what the write may change: also what the caller holds, which the write must not prove."""
        foreign = self._foreign_members()
        people = await read_people(self.tx, foreign | candidates(self.central, self.before.members))
        self.administered = administration(self.central, self.before, people, self.caller.now)
        self.inside = {user_id: _lets_in(self.before, people, user_id) for user_id in foreign}
        if not self.rights.is_root:
            own = (await belongings(self.tx, self.project_id)).applications  # others are refused by the write itself
            for application_id in own & {*applications, *self.before.facts.services}:
                self.grantable[application_id] = await self._grantable(application_id)

    async def _grantable(self, application_id: int) -> frozenset[str]:
        """Roles of an application that the caller may grant to groups, and revoke from them."""
        application = await read_application(self.tx, application_id)
        facts = await read_facts(self.tx, self.caller.user_id, application_id, self.caller.own_address)
        if application is None or facts is None:
            return frozenset()
        secret = secret_rights(application.schema, facts.own, self.caller.now)
        if "canModifySchema" in secret.application or secret.meta["roles.canWrite"] == ALL:
            return frozenset(application.roles)  # the caller defines the application's roles, or assigns them
        regular = {name: role for name, role in application.roles.items() if not role.protected}
        if administers(self.central, self.holdings):
            return frozenset(regular)
        effective = compute_permissions(application, facts, self.caller.now)
        self_written = Rights(self.rights.central, secret).writable_sections(own=True)
        return frozenset(name for name, role in regular.items() if _holds(effective, role, self_written))

    def _foreign_members(self) -> frozenset[str]:
        """Members with a role that the caller does not hold."""
        if self.rights.is_root:
            return frozenset()
        return frozenset(member.user_id for member in self.before.members if not self._may_take(member))

    async def judge(self) -> None:
        after = (await read_states(self.tx, [self.project_id]))[self.project_id]
        if not self.rights.is_root:
            self._judge_members(after)
            self._judge_actions(after)
            await self._judge_access(after)
        if self.administered:
            people = await read_people(self.tx, candidates(self.central, after.members))
            left = administration(self.central, after, people, self.caller.now)
            if left < self.administered:
                raise PermissionConflict(NONE_LASTING if left else NONE_LEFT)

    def _judge_members(self, after: ProjectState) -> None:
        for member in self.before.members - after.members:
            if not self._may_take(member):
                raise Forbidden(NOT_HELD % member.role)
        for member in after.members - self.before.members:
            if not self._holds(member, assignment_end(member.assignment)):
                raise Forbidden(NOT_HELD % member.role)

    def _may_take(self, member: Member) -> bool:
        return member.assignment.ended(self.caller.now) or self._holds(member, None)

    def _holds(self, member: Member, lasting: int | None) -> bool:
        role = self.central.roles.get(member.role)
        if role is None:
            return True  # it gives nothing
        place = (member.role, member.level, member.resource, lasting)
        if place not in self.judged:  # once for all members with the same role
            self.judged[place] = self.holdings.cover_role(role, member.level, member.resource, lasting)
        return self.judged[place]

    def _judge_actions(self, after: ProjectState) -> None:
        """Grants and revokes that are changed, or whose group is. Grants also depend on whom the project lets in."""
        changed = set(self.before.actions ^ after.actions)
        if self.before.entry != after.entry:
            changed |= {item for item in self.before.actions | after.actions if item.action.action == "grant"}
        if any(item.action.role not in self.grantable.get(item.application_id, ()) for item in changed):
            raise Forbidden(NOT_GRANTABLE)

    async def _judge_access(self, after: ProjectState) -> None:
        if self.before.entry == after.entry:
            return
        people = await read_people(self.tx, self.inside)
        if any(_lets_in(after, people, user_id) != inside for user_id, inside in self.inside.items()):
            raise Forbidden(SHUT_OUT)


def _lets_in(state: ProjectState, people: dict[str, KnownUser], user_id: str) -> bool:
    return project_exclusion(state.facts, people[user_id].facts if user_id in people else UserFacts(user_id)) is None


def _holds(effective: EffectivePermissions, role: CompiledRole, self_written: frozenset[str]) -> bool:
    """Whether the caller has every rule of an application's role, for good; also those that the role denies.

    Data and roles that the caller may write itself prove nothing.
    """
    for rule in role.rules:
        section = rule.path.partition(".")[0]
        held = [
            HeldRule(source.params, source.ends)
            for source in effective.rules.get(rule.path, ())
            if not _is_self_written(effective, source, section, self_written)
        ]
        if not (covers(held, rule.source.params, 0) if rule.listed else held):
            return False
    return True


def _is_self_written(
    effective: EffectivePermissions, source: RuleSource, section: str, self_written: frozenset[str]
) -> bool:
    """Whether a source of a rule is one that the caller may have made itself."""
    if source.layer == rules.ROLE:
        origins = effective.roles[source.role].origins
        return "roles" in self_written and all(origin.kind == ASSIGNMENT for origin in origins)
    return source.layer == rules.OWN and section in self_written
