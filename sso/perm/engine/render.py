"""Render permissions as one of the types of §4.5: list, list_short, roles or tree.

The formats are exact to the character, because other services compare these strings. Lists are sorted as whole strings.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.project_access import PROJECT_LEVEL, AccessScope, MembershipRole, ProjectAccess
from sso.perm.engine.records import Assignment, OwnRecord, Schema
from sso.perm.engine.reserved_names import PROJECT_ACCESS, SECTIONS
from sso.perm.engine.rules import (
    RuleSource,
    earliest_end,
    latest_end,
    merged_params,
    section_of,
    without_section,
)
from sso.perm.engine.user_overrides import tree_with_overrides

# The sources of each path that a list entry stands for, usually one.
SourceGroups: TypeAlias = tuple[tuple[RuleSource, ...], ...]

ALL_SECTIONS = frozenset((*SECTIONS, "roles"))
_TREE_SECTIONS = tuple(sorted(SECTIONS))


class Options(Struct, frozen=True):
    """The options of a get, and the sections that the caller may read. Other sections are left out."""

    project_id: str | None = None  # or an alias
    hide_project_access: bool = False
    with_exp: bool = False
    with_roles: bool = False
    with_apps_data: bool = False
    sections: frozenset[str] = ALL_SECTIONS


DEFAULT_OPTIONS = Options()


def render(
    list_type: str,
    application: CompiledApplication,
    facts: PermissionFacts,
    effective: EffectivePermissions,
    options: Options = DEFAULT_OPTIONS,
) -> Any:
    """Returns the member ``data`` of a response: the permissions, or an object with them and the parts that options
    ask for."""
    if list_type == "tree":
        rendering: Any = as_tree(application.schema, facts.own, options.sections)
    else:
        rendering = _LISTS[list_type](effective, options)
    if not options.with_roles and not options.with_apps_data:
        return rendering
    data: dict[str, Any] = {"rules": rendering}
    if options.with_roles and "roles" in options.sections:
        data["roles"] = effective_roles(effective, options)
    if options.with_apps_data:
        projects = visible_projects(effective, options) if "private_data" in options.sections else []
        data["projects"] = {access.project.id: _project(access) for access in projects}
        data["apps"] = {access.project.id: _applications(access) for access in projects}
    return data


def as_list(effective: EffectivePermissions, options: Options = DEFAULT_OPTIONS) -> list[str]:
    entries = list_entries(effective, options)
    return sorted(_entry(name, sources, effective.now, options.with_exp) for name, sources in entries.items())


def list_entries(effective: EffectivePermissions, options: Options) -> dict[str, SourceGroups]:
    """Returns the sources of each entry of the list, by its name."""
    entries: dict[str, SourceGroups] = {
        path: (sources,) for path, sources in effective.rules.items() if section_of(path) in options.sections
    }
    for access, scope in _visible_scopes(effective, options):
        prefix = list_prefix(access.project.id, scope.level, scope.resource)
        entries.update((prefix + path, (sources,)) for path, sources in scope.rules.items())
    return entries


def as_list_short(effective: EffectivePermissions, options: Options = DEFAULT_OPTIONS) -> list[str]:
    """The list without sections: a path in public and private data is one entry. See `short_name`."""
    entries = list_short_entries(effective, options)
    return sorted(_entry(name, sources, effective.now, options.with_exp) for name, sources in entries.items())


def list_short_entries(effective: EffectivePermissions, options: Options) -> dict[str, SourceGroups]:
    """Returns the sources of each entry of the short list, by its name."""
    entries: dict[str, SourceGroups] = {}
    for path in sorted(effective.rules):  # private_data comes first, also where parameters merge
        if section_of(path) in options.sections:
            name = short_name(effective, path)
            if name is not None:
                entries[name] = (*entries.get(name, ()), effective.rules[path])
    for access, scope in _visible_scopes(effective, options):
        prefix = short_prefix(access.project.id, scope.level, scope.resource)
        entries.update((prefix + path, (sources,)) for path, sources in scope.rules.items())
    return entries


def as_roles(effective: EffectivePermissions, options: Options = DEFAULT_OPTIONS) -> list[str]:
    """Assigned and granted roles that are neither ended nor revoked, whether or not their condition holds."""
    names = set(effective.held_roles.assigned_or_granted)
    names.update(role_name(access, role) for access in visible_projects(effective, options) for role in access.roles)
    return sorted(names)


_LISTS: Mapping[str, Callable[[EffectivePermissions, Options], list[str]]] = {
    "list": as_list,
    "list_short": as_list_short,
    "roles": as_roles,
}


def as_tree(schema: Schema, own: OwnRecord, sections: frozenset[str] = ALL_SECTIONS) -> dict[str, Any]:
    """Returns the application's schema with the overrides of the user's stored record, as a save returns it.

    Roles are not merged in and project access is not shown. Entries and roles that have ended are included, each with
    its ``expired``.
    """
    tree: dict[str, Any] = {
        name: tree_with_overrides(getattr(schema, name), getattr(own, name))
        for name in _TREE_SECTIONS
        if name in sections
    }
    if "roles" in sections:
        tree["roles"] = [render_assignment(assignment) for assignment in own.roles]
    return tree


def render_assignment(assignment: Assignment) -> str | dict[str, Any]:
    """Returns the name of the role, or an object if the assignment ends. A save accepts both."""
    limits = {"expired": assignment.expired, "ttl": assignment.ttl}
    set_limits = {name: value for name, value in limits.items() if value}
    return {"name": assignment.name, **set_limits} if set_limits else assignment.name


def effective_roles(effective: EffectivePermissions, options: Options = DEFAULT_OPTIONS) -> list[str]:
    names = set(effective.roles)
    for access in visible_projects(effective, options):
        names.update(role_name(access, role) for role in access.roles if role.applies)
    return sorted(names)


def earliest_role_end(effective: EffectivePermissions, options: Options = DEFAULT_OPTIONS) -> int:
    """``expired`` of a response: the earliest end time of the effective roles in it.

    Returns 0 if none of them ends, and if the caller may not read roles.
    """
    if "roles" not in options.sections:
        return 0
    ends = [role.ends for role in effective.roles.values()]
    for access in visible_projects(effective, options):
        ends.extend(role.ends for role in access.roles if role.applies)
    return earliest_end(ends)


def visible_projects(effective: EffectivePermissions, options: Options) -> list[ProjectAccess]:
    """Returns the projects that the options ask for, sorted by id."""
    if options.hide_project_access:
        return []
    name = options.project_id
    return sorted(
        (access for access in effective.projects if name is None or access.project.is_named(name)),
        key=lambda access: access.project.id,
    )


def short_name(effective: EffectivePermissions, path: str) -> str | None:
    """Returns the name of a rule in ``list_short``, or None if that list leaves it out.

    A public path that the user may have written keeps its section, unless it is declared as public. A path that is
    declared as private never comes from public data.
    """
    if path in effective.self_written_paths:
        return path
    return None if path in effective.shadowed_paths else without_section(path)


def list_prefix(project_id: str, level: str, resource: str) -> str:
    scope = "" if level == PROJECT_LEVEL else f"{level}.{resource}."
    return f"private_data.{PROJECT_ACCESS}.{project_id}.{scope}private_data."


def short_prefix(project_id: str, level: str, resource: str) -> str:
    return f"{project_id}/" if level == PROJECT_LEVEL else f"{project_id}/{level}/{resource}/"


def role_name(access: ProjectAccess, role: MembershipRole) -> str:
    return f"{access.project.id}{role.scope_suffix}/{role.name}"


def _visible_scopes(effective: EffectivePermissions, options: Options) -> Iterator[tuple[ProjectAccess, AccessScope]]:
    if "private_data" in options.sections:  # project access is part of private_data
        for access in visible_projects(effective, options):
            for scope in access.scopes:
                yield access, scope


def entry_params(source_groups: SourceGroups) -> tuple[str, ...]:
    """The parameters of a list entry; none if the rule is unlimited."""
    first = source_groups[0]
    return first[0].params if len(source_groups) == len(first) == 1 else merged_params(source_groups)


def _entry(name: str, source_groups: SourceGroups, now: int, with_exp: bool) -> str:
    params = entry_params(source_groups)
    entry = f"{name}|{','.join(params)}" if params else name
    if not with_exp:
        return entry
    ends = latest_end(source.ends for sources in source_groups for source in sources)
    return f"{entry}:{ends - now if ends else 0}"


def _project(access: ProjectAccess) -> dict[str, Any]:
    project = access.project
    aliases = {"aliases": list(project.aliases)} if project.aliases else {}
    return {"name": project.title or project.id, **aliases}


def _applications(access: ProjectAccess) -> list[dict[str, Any]]:
    """Returns all applications of the project for a project-wide role, else those at which the user has a role."""
    roles = [role for role in access.roles if role.applies]
    project_wide = any(role.level == PROJECT_LEVEL for role in roles)
    resources = {role.resource for role in roles if role.level in ("applications", "services")}
    return [
        {"id": application.id, "name": application.name}
        for application in sorted(access.project.applications, key=lambda item: item.id)
        if not application.removed and (project_wide or str(application.id) in resources)
    ]
