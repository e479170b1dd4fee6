"""Compute a user's effective permissions at an application from facts and a time: the core of the model.

There are three layers: the schema's values, then roles, then the user's own data. A higher layer overrides a lower one,
and among roles a true value wins over a false one. Entries and assignments that have ended are ignored.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sso.core.ban import Ban, ban_in_force
from sso.perm.engine import rules
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.held_roles import DEFAULT, NO_ROLES, HeldRole, HeldRoles, Origin, compute_held_roles
from sso.perm.engine.project_access import AccessScope, MembershipRole, ProjectAccess, compute_project_access
from sso.perm.engine.records import NO_RECORD, OwnRecord
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rules import RuleEntry, RuleSource
from sso.perm.engine.secret_rights import ALL, SELF, secret_rights

APPLICATION_LEVELS = ("applications", "services")


class EffectivePermissions(Struct, frozen=True):
    application_id: int
    now: int
    held_roles: HeldRoles
    rules: Mapping[str, tuple[RuleSource, ...]]  # the sources of each rule, by path
    projects: tuple[ProjectAccess, ...]
    # Public paths that the user may have written. They keep their section in list_short.
    self_written_paths: frozenset[str] = frozenset()
    # Public paths that are declared as private rules. list_short leaves them out.
    shadowed_paths: frozenset[str] = frozenset()

    @property
    def roles(self) -> Mapping[str, HeldRole]:
        return self.held_roles.effective


def compute_permissions(application: CompiledApplication, facts: PermissionFacts, now: int) -> EffectivePermissions:
    if facts.removed or (facts.home is not None and facts.home.removed):
        return no_permissions(application.application_id, now)
    if facts.bans and facts.ban(application.application_id, now):
        return no_permissions(application.application_id, now)
    if facts.user.cannot_administer and application.application_id == CENTRAL_APPLICATION_ID:
        return no_permissions(application.application_id, now)
    held_roles = compute_held_roles(application, facts, now)
    projects: tuple[ProjectAccess, ...] = ()
    if application.application_id == CENTRAL_APPLICATION_ID:
        accesses = (
            compute_project_access(application, project, facts.user, held_roles.met_conditions, now)
            for project in facts.projects
        )
        projects = tuple(access for access in accesses if access is not None)
        if facts.bans:
            projects = tuple(_without_banned(projects, facts.bans, now))
    sources = _rule_sources(application, facts.own, held_roles, now)
    self_written, shadowed = _public_paths(application, facts.own, sources, now)
    return EffectivePermissions(application.application_id, now, held_roles, sources, projects, self_written, shadowed)


def _without_banned(projects: Iterable[ProjectAccess], bans: tuple[Ban, ...], now: int) -> Iterator[ProjectAccess]:
    """Leaves out the projects in which the user is banned, and the roles and rights at applications where the user
    is."""

    def is_open(place: MembershipRole | AccessScope) -> bool:
        if place.level not in APPLICATION_LEVELS:
            return True
        return ban_in_force(bans, now, (int(place.resource),)) is None

    for access in projects:
        roles = tuple(filter(is_open, access.roles))
        if roles and ban_in_force(bans, now, (), (access.project.id,)) is None:
            yield replace(access, roles=roles, scopes=tuple(filter(is_open, access.scopes)))


def no_permissions(application_id: int, now: int) -> EffectivePermissions:
    return EffectivePermissions(application_id, now, NO_ROLES, {}, ())


def compute_default_permissions(application: CompiledApplication, now: int) -> EffectivePermissions:
    """What every new user has: the schema's values and the default roles, whichever conditions the user will meet."""
    roles = {role.name: HeldRole(role.name, (Origin(DEFAULT),)) for role in application.default_roles}
    held_roles = replace(NO_ROLES, effective=roles)
    sources = _rule_sources(application, NO_RECORD, held_roles, now)
    _, shadowed = _public_paths(application, NO_RECORD, sources, now)
    return EffectivePermissions(application.application_id, now, held_roles, sources, (), shadowed_paths=shadowed)


def own_entries(own: OwnRecord, now: int) -> Iterator[RuleEntry]:
    """Returns the listed rules in the user's own record that have not ended."""
    for section in rules.LISTED_SECTIONS:
        tree = getattr(own, section)
        if tree:
            for entry in rules.rule_entries(tree, section):
                if not 0 < entry.expired <= now:
                    yield entry


def _rule_sources(
    application: CompiledApplication, own: OwnRecord, held_roles: HeldRoles, now: int
) -> dict[str, tuple[RuleSource, ...]]:
    sources: dict[str, tuple[RuleSource, ...]] = {}
    denied_by_role: set[str] = set()
    for role in held_roles.effective.values():
        ends = role.ends
        for rule in application.roles[role.name].rules:
            if rule.listed:
                source = rule.source._replace(ends=ends) if ends else rule.source
                sources[rule.path] = (*sources.get(rule.path, ()), source)
            else:
                denied_by_role.add(rule.path)
    for path, source in application.schema_rules.items():
        # A role with a false value overrides the schema, even when another role gives the rule.
        if path not in denied_by_role:
            sources[path] = (source, *sources.get(path, ()))
    for entry in own_entries(own, now):
        if entry.listed:  # replaces all sources from roles and the schema, with their parameters and end times
            sources[entry.path] = (RuleSource(rules.OWN, "", entry.params, entry.expired),)
        else:
            sources.pop(entry.path, None)
    return sources


def _public_paths(
    application: CompiledApplication, own: OwnRecord, paths: Iterable[str], now: int
) -> tuple[frozenset[str], frozenset[str]]:
    """``self_written_paths`` and ``shadowed_paths``: the public paths that have no short name."""
    names = {path: rules.without_section(path) for path in paths if path.startswith("public_data.")}
    self_written: frozenset[str] = frozenset()
    undeclared = [path for path, name in names.items() if name not in application.public_names]
    if undeclared and secret_rights(application.schema, own, now).meta["public.canWrite"] in (SELF, ALL):
        self_written = frozenset(undeclared)
    private = frozenset(path for path, name in names.items() if name in application.private_names)
    return self_written, private - self_written
