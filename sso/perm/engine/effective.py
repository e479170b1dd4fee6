"""From facts and a moment to effective permissions: the heart of the model.

Three layers: the schema's values, then roles, then the user's own data. A higher layer decides over a lower one, and
within the roles a true value beats a false one. What is ended is as if absent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sso.perm.engine import rules
from sso.perm.engine.access import ProjectAccess, project_access
from sso.perm.engine.compiled import Application
from sso.perm.engine.facts import OwnRecord, PermissionFacts
from sso.perm.engine.roles import HeldRole, HeldRoles, held_roles
from sso.perm.engine.rules import RuleEntry, RuleSource
from sso.perm.names import CENTRAL_APPLICATION_ID

NO_ROLES = HeldRoles({}, frozenset(), frozenset(), frozenset())


@dataclass(frozen=True)
class Effective:
    application_id: int
    now: int
    held: HeldRoles
    rules: Mapping[str, tuple[RuleSource, ...]]  # by path; every source that keeps the rule alive
    projects: tuple[ProjectAccess, ...]
    # Public paths that list_short never shows under their short name: the user wrote them into their own data.
    sectioned: frozenset[str] = frozenset()
    # Public paths that a role or the schema gives, and that are declared as private rules as well.
    ambiguous: frozenset[str] = frozenset()

    @property
    def roles(self) -> Mapping[str, HeldRole]:
        return self.held.effective


def compute(application: Application, facts: PermissionFacts, now: int) -> Effective:
    if facts.removed or (facts.home is not None and facts.home.removed):
        return Effective(application.application_id, now, NO_ROLES, {}, ())
    held = held_roles(application, facts, now)
    projects: tuple[ProjectAccess, ...] = ()
    if application.application_id == CENTRAL_APPLICATION_ID:
        accesses = (project_access(application, p, facts.user, held.holding, now) for p in facts.projects)
        projects = tuple(access for access in accesses if access is not None)
    found = _rules(application, facts.own, held, now)
    sectioned, ambiguous = _public_paths(application, found)
    return Effective(application.application_id, now, held, found, projects, sectioned, ambiguous)


def own_entries(own: OwnRecord, now: int) -> Iterator[RuleEntry]:
    """What the user's own record says about listed rules, less what is ended."""
    for section in rules.LISTED_SECTIONS:
        tree = getattr(own, section)
        if tree:
            for entry in rules.entries(tree, section):
                if not 0 < entry.expired <= now:
                    yield entry


def _rules(application: Application, own: OwnRecord, held: HeldRoles, now: int) -> dict[str, tuple[RuleSource, ...]]:
    found: dict[str, tuple[RuleSource, ...]] = {}
    denied: set[str] = set()  # some role says no
    for role in held.effective.values():
        ends = role.ends
        for rule in application.roles[role.name].rules:
            if rule.listed:
                source = rule.source._replace(ends=ends) if ends else rule.source
                found[rule.path] = (*found.get(rule.path, ()), source)
            else:
                denied.add(rule.path)
    for path, source in application.listed.items():
        if path not in denied:  # a role that says no hides what the schema says, also after the others have ended
            found[path] = (source, *found.get(path, ()))
    for entry in own_entries(own, now):
        if entry.listed:  # it replaces what roles and the schema give, parameters and end included
            found[entry.path] = (RuleSource(rules.OWN, "", entry.params, entry.expired),)
        else:
            found.pop(entry.path, None)
    return found


def _public_paths(
    application: Application, found: Mapping[str, tuple[RuleSource, ...]]
) -> tuple[frozenset[str], frozenset[str]]:
    """The public paths that must not pass for private rules: those of the user's own data, and all others."""
    sectioned: set[str] = set()
    ambiguous: set[str] = set()
    for path, sources in found.items():
        if path.startswith("public_data."):
            name = rules.short(path)
            private = name in application.private_names
            if sources[0].layer != rules.OWN:
                if private:
                    ambiguous.add(path)
            elif private or name not in application.public_names:
                sectioned.add(path)
    return frozenset(sectioned), frozenset(ambiguous)
