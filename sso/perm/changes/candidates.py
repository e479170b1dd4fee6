"""Finds the users whose permissions at an application may differ between two states.

Candidates are found by what they have: an assignment, a record, a membership, a place in a group, or an attribute that
a condition requires. Each candidate is evaluated afterwards, so there may be too many candidates, never too few.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from sso.db.transaction import Runner, Transaction
from sso.perm.changes.impact import MAX_COUNTED_USERS, MAX_EXACT_USERS
from sso.perm.engine.compiled_application import CompiledApplication, CompiledRole
from sso.perm.engine.conditions import Condition, required_attributes
from sso.perm.engine.facts import Group, ProjectFacts
from sso.perm.engine.project_access import project_scopes
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.user_facts import UserFacts
from sso.perm.stores import affected_users
from sso.perm.stores.permission_state import PermissionState
from sso.perm.stores.user_rows import UserAccount


class Candidates(Struct):
    """The users that may be affected at one application."""

    application_id: int
    everyone: bool = False
    all_records: bool = False  # every user with a record or a role at the application
    users: set[str] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)
    attributes: set[tuple[str, str]] = field(default_factory=set)  # (tag, purchase or domain, value)

    def __bool__(self) -> bool:
        return bool(self.everyone or self.all_records or self.users or self.roles or self.attributes)

    def add_condition(self, condition: Condition) -> None:
        """Adds all users for whom the condition of a role or group may hold."""
        attributes = required_attributes(condition)
        if attributes is None:
            self.everyone = True
            return
        for kind, value in attributes:
            if kind == "uid":
                self.users.add(value)
            else:
                self.attributes.add((kind, value))

    def add_role(self, role: CompiledRole | None) -> None:
        """Adds all users who may hold the role, other than through groups."""
        if role is None:
            return
        if role.is_default:
            self.everyone = True
        self.roles.add(role.name)
        if role.condition is not None:
            self.add_condition(role.condition)

    def add_grants(self, home: ProjectFacts | None, roles: Collection[str] | None = None) -> None:
        """Adds the members of the groups that the project grants these roles to, or revokes them from; None is all."""
        if home is None:
            return
        actions = home.services.get(self.application_id, ())
        group_ids = {action.group_id for action in actions if roles is None or action.role in roles}
        for group in home.groups:
            if group.id in group_ids:
                self.add_group(group)

    def add_group(self, group: Group) -> None:
        self.users |= group.users
        for item in group.conditions:
            self.add_condition(item.condition)

    def add_all(self, application: CompiledApplication, home: ProjectFacts | None) -> None:
        """Adds all users who may have any permission at the application."""
        self.all_records = True
        self.everyone |= bool(application.schema_rules or application.default_roles)
        for role in application.roles.values():
            if role.condition is not None:
                self.add_condition(role.condition)
        self.add_grants(home)

    async def find(self, runner: Runner, limit: int = MAX_EXACT_USERS + 1) -> list[str]:
        """Returns the ids of the candidates that exist, at most ``limit``."""
        return await affected_users.find_candidates(runner, self._criteria, limit)

    async def find_some(self, tx: Transaction, limit: int) -> list[str]:
        """Like `find`, with a bounded amount of work even if very many users have an attribute."""
        await affected_users.limit_index_reads(tx, 20 * limit)
        return await self.find(tx, limit)

    async def count(self, runner: Runner) -> int:
        """Returns the number of candidates, or `MAX_COUNTED_USERS` if there are more."""
        return await affected_users.count_candidates(runner, self._criteria, MAX_COUNTED_USERS)

    @property
    def _criteria(self) -> dict[str, Any] | None:
        if self.everyone:
            return None
        attributes = {
            f"{kind}s": [value for other, value in self.attributes if other == kind]
            for kind in ("tag", "purchase", "domain")
        }
        return {
            "application_id": self.application_id,
            "users": list(self.users),
            "roles": list(self.roles),
            "all_records": self.all_records,
            "by_attribute": bool(self.attributes),
            **attributes,
        }


def find_candidates(application_id: int, before: PermissionState, after: PermissionState) -> Candidates:
    """Returns the users whose permissions at the application may differ between the states."""
    candidates = Candidates(application_id)
    old, new = before.compiled.get(application_id), after.compiled.get(application_id)
    homes = before.home(application_id), after.home(application_id)
    if is_removed(before, application_id) != is_removed(after, application_id):
        for application, home in zip((old, new), homes, strict=True):
            if application is not None:
                candidates.add_all(application, home)
        return candidates
    if old is not None and new is not None and old is not new:
        _add_changed_roles(candidates, old, new, homes)
    if _grants(application_id, homes[0]) != _grants(application_id, homes[1]):
        for home in homes:
            candidates.add_grants(home)
    if application_id == CENTRAL_APPLICATION_ID:
        candidates.users |= _changed_members(before, after)
    return candidates


def is_removed(state: PermissionState, application_id: int) -> bool:
    """Returns whether nobody has permissions at the application."""
    application, home = state.applications.get(application_id), state.home(application_id)
    return application is None or application.removed or (home is not None and home.removed)


def _add_changed_roles(
    candidates: Candidates,
    old: CompiledApplication,
    new: CompiledApplication,
    homes: Iterable[ProjectFacts | None],
) -> None:
    if old.schema_rules != new.schema_rules:
        candidates.everyone = True
        return
    changed = changed_roles(old, new)
    for name in changed:
        candidates.add_role(old.roles.get(name))
        candidates.add_role(new.roles.get(name))
    for home in homes:
        candidates.add_grants(home, changed)


def changed_roles(old: CompiledApplication, new: CompiledApplication) -> frozenset[str]:
    """Returns the names of roles that differ in what they give, or to whom."""
    return frozenset(
        name
        for name in old.roles.keys() | new.roles.keys()
        if _effect(old.roles.get(name)) != _effect(new.roles.get(name))
    )


def _effect(role: CompiledRole | None) -> object:
    if role is None:
        return None
    record = role.record
    return record.meta, record.params, record.condition, role.is_default, record.protected


def _grants(application_id: int, home: ProjectFacts | None) -> object:
    """Returns all that decides which users get roles of the application through its project, or lose them."""
    if home is None or not (actions := home.services.get(application_id, ())):
        return None
    named = {action.group_id for action in actions}
    return actions, _access(home), [group for group in home.groups if group.id in named]


def _access(project: ProjectFacts) -> object:
    """Returns all that decides which users a project excludes."""
    listed = {*project.allow, *project.disallow}
    groups = [group for group in project.groups if group.id in listed]
    return project.removed, project.allowed_domains, project.allow, project.disallow, groups


def _changed_members(before: PermissionState, after: PermissionState) -> set[str]:
    """Returns the members of projects in the scope whose roles or scopes changed."""
    changed: set[str] = set()
    for project_id in before.members.keys() | after.members.keys():
        old, new = before.members.get(project_id, {}), after.members.get(project_id, {})
        projects = before.projects.get(project_id), after.projects.get(project_id)
        if _membership_effect(projects[0]) != _membership_effect(projects[1]):
            changed |= old.keys() | new.keys()
        else:
            changed |= {user_id for user_id in old.keys() | new.keys() if old.get(user_id) != new.get(user_id)}
    return changed


def _membership_effect(project: ProjectFacts | None) -> object:
    return None if project is None else (_access(project), list(project_scopes(project)))


def attributes_that_differ(
    before: Mapping[str, UserAccount], after: Mapping[str, UserAccount], *, creates_accounts: bool
) -> Iterator[tuple[str, frozenset[str]]]:
    """Returns the users whose attributes a write changed, by id.

    A user whom the write created had no attributes before.
    """
    for user_id, account in after.items():
        if user_id in before:
            if before[user_id].facts != account.facts:
                yield user_id, _changed_attributes(before[user_id].facts, account.facts)
        elif creates_accounts:
            yield user_id, _changed_attributes(UserFacts(""), account.facts)


def _changed_attributes(old: UserFacts, new: UserFacts) -> frozenset[str]:
    """Returns the strings of which a stored condition has one if the difference of the attributes matters to it."""
    domain = ("domain",) if old.domain != new.domain else ()
    user_id = ("uid",) if old.user_id != new.user_id else ()
    return frozenset((*(old.tags ^ new.tags), *(old.purchases ^ new.purchases), *domain, *user_id))
