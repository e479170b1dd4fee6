"""The ways to show permissions (§4.5): tree, list, list_short, roles, and the options of a get.

Formats are fixed to the character: other services compare these strings. Lists sort as whole strings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sso.perm.engine import rules
from sso.perm.engine.access import PROJECT, AccessScope, GivenRole, ProjectAccess
from sso.perm.engine.effective import Effective
from sso.perm.engine.rules import RuleSource, earliest, longest, merged_params
from sso.perm.names import PROJECT_ACCESS

SECTIONS = frozenset(("public_data", "private_data", "secret_data", "roles", "login"))


@dataclass(frozen=True)
class Options:
    """The options of a get, and the sections that the caller may read; the others are left out."""

    project_id: str | None = None  # or an alias
    hide_project_access: bool = False
    with_exp: bool = False
    with_roles: bool = False
    with_apps_data: bool = False
    sections: frozenset[str] = SECTIONS


EVERYTHING = Options()


def as_list(effective: Effective, options: Options = EVERYTHING) -> list[str]:
    found = {path: (sources,) for path, sources in effective.rules.items() if _section(path) in options.sections}
    for access, place in _places(effective, options):
        prefix = list_prefix(access.project.id, place.level, place.resource)
        found.update((prefix + path, (sources,)) for path, sources in place.rules.items())
    return sorted(_line(name, sources, effective.now, options.with_exp) for name, sources in found.items())


def as_list_short(effective: Effective, options: Options = EVERYTHING) -> list[str]:
    """Without sections: the same path in public and private data is one entry, except where `short_name` differs."""
    found: dict[str, tuple[tuple[RuleSource, ...], ...]] = {}
    for path in sorted(effective.rules):  # private_data comes first, also where parameters merge
        if _section(path) in options.sections:
            name = short_name(effective, path, options.sections)
            found[name] = (*found.get(name, ()), effective.rules[path])
    for access, place in _places(effective, options):
        prefix = short_prefix(access.project.id, place.level, place.resource)
        found.update((prefix + path, (sources,)) for path, sources in place.rules.items())
    return sorted(_line(name, sources, effective.now, options.with_exp) for name, sources in found.items())


def short_name(effective: Effective, path: str, sections: frozenset[str] = SECTIONS) -> str:
    """The name of a rule in ``list_short``. A public rule keeps its section where it could pass for a private one:
    if the user wrote it and the schema does not declare it, or if the path is private and the private rule is not held.
    """
    if path in effective.sectioned:
        return path
    name = rules.short(path)
    if path in effective.ambiguous and not ("private_data" in sections and f"private_data.{name}" in effective.rules):
        return path
    return name


def as_roles(effective: Effective, options: Options = EVERYTHING) -> list[str]:
    """Assigned and granted roles, unexpired, less revoked ones, whether or not their condition holds."""
    found = set(effective.held.named)
    found.update(role_name(access, role) for access in shown(effective, options) for role in access.roles)
    return sorted(found)


def effective_roles(effective: Effective, options: Options = EVERYTHING) -> list[str]:
    found = set(effective.roles)
    found.update(role_name(a, role) for a in shown(effective, options) for role in a.roles if role.applies)
    return sorted(found)


def expired(effective: Effective, options: Options = EVERYTHING) -> int:
    """The earliest end of the effective roles that the answer is about.

    0 when none of them ends, and for callers who may not read roles.
    """
    if "roles" not in options.sections:
        return 0
    ends = [role.ends for role in effective.roles.values()]
    for access in shown(effective, options):
        ends.extend(role.ends for role in access.roles if role.applies)
    return earliest(ends)


def with_options(body: Any, effective: Effective, options: Options) -> Any:
    """``data`` of the answer: the rendering itself, or an object that holds it beside what else was asked for."""
    if not options.with_roles and not options.with_apps_data:
        return body
    data: dict[str, Any] = {"rules": body}
    if options.with_roles and "roles" in options.sections:
        data["roles"] = effective_roles(effective, options)
    if options.with_apps_data:
        visible = shown(effective, options) if "private_data" in options.sections else []
        data["projects"] = {access.project.id: _project(access) for access in visible}
        data["apps"] = {access.project.id: _applications(access) for access in visible}
    return data


def shown(effective: Effective, options: Options) -> list[ProjectAccess]:
    """The projects that the answer is about, in the order of their ids."""
    if options.hide_project_access:
        return []
    wanted = options.project_id
    return sorted(
        (access for access in effective.projects if wanted is None or access.project.is_named(wanted)),
        key=lambda access: access.project.id,
    )


def list_prefix(project_id: str, level: str, resource: str) -> str:
    place = "" if level == PROJECT else f"{level}.{resource}."
    return f"private_data.{PROJECT_ACCESS}.{project_id}.{place}private_data."


def short_prefix(project_id: str, level: str, resource: str) -> str:
    return f"{project_id}/" if level == PROJECT else f"{project_id}/{level}/{resource}/"


def role_name(access: ProjectAccess, role: GivenRole) -> str:
    return f"{access.project.id}{role.at}/{role.name}"


def _places(effective: Effective, options: Options) -> Iterator[tuple[ProjectAccess, AccessScope]]:
    if "private_data" in options.sections:  # where project access belongs
        for access in shown(effective, options):
            for place in access.places:
                yield access, place


def _line(name: str, paths: tuple[tuple[RuleSource, ...], ...], now: int, with_exp: bool) -> str:
    """One entry; ``paths`` holds the sources of each path that the entry stands for, usually one."""
    first = paths[0]
    parameters = first[0].params if len(paths) == len(first) == 1 else merged_params(paths)
    line = f"{name}|{','.join(parameters)}" if parameters else name
    if not with_exp:
        return line
    ends = longest(source.ends for sources in paths for source in sources)
    return f"{line}:{ends - now if ends else 0}"


def _section(path: str) -> str:
    return path.partition(".")[0]


def _project(access: ProjectAccess) -> dict[str, Any]:
    project = access.project
    aliases = {"aliases": list(project.aliases)} if project.aliases else {}
    return {"name": project.title or project.id, **aliases}


def _applications(access: ProjectAccess) -> list[dict[str, Any]]:
    """All of the project for a role at project level, else those that a role is given at."""
    working = [role for role in access.roles if role.applies]
    everywhere = any(role.level == PROJECT for role in working)
    named = {role.resource for role in working if role.level in ("applications", "services")}
    return [
        {"id": application.id, "name": application.name}
        for application in sorted(access.project.applications, key=lambda item: item.id)
        if not application.removed and (everywhere or str(application.id) in named)
    ]
