"""Read a project's settings (§2.4) and its membership, and check that what they name is the project's own."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sso.core.ids import is_user_id
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, PROJECT_TAG
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import project_id_from_title, read_aliases, read_application_key, read_group_id, read_segment
from sso.perm.input.roles import check_roles_exist, read_assignments, stored
from sso.perm.input.validators import unique

MAX_GROUP_USERS = 100
MAX_LIST = 100
MAX_ACTIONS = 1000
_SETTINGS = frozenset(("allowed_domains", "services"))
_ACTION = frozenset(("group_id", "role", "action"))
_LEVELS = frozenset(("project", "applications", "services", "groups"))


@dataclass(frozen=True)
class ProjectResources:
    """What a project has, by which everything that it names is judged."""

    applications: frozenset[int] = frozenset()  # not removed
    services: frozenset[int] = frozenset()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # with their tags

    @classmethod
    def of(cls, project: ProjectFacts) -> "ProjectResources":
        alive = [item for item in project.applications if not item.removed and item.id != CENTRAL_APPLICATION_ID]
        return cls(
            frozenset(item.id for item in alive),
            frozenset(item.id for item in alive if item.is_service),
            {group.id: group.tags for group in project.groups},
        )


def read_project_settings(value: object, where: str = "settings") -> tuple[dict[str, Any], list[str]]:
    """The shape alone; `check_services` judges what it names."""
    settings = validators.an_object(value, where)
    warnings = validators.unknown(settings, _SETTINGS, where)
    found: dict[str, Any] = {}
    if "allowed_domains" in settings:
        found["allowed_domains"] = validators.domains(settings["allowed_domains"], f"{where}.allowed_domains")
    if "services" in settings:
        here = f"{where}.services"
        found["services"] = {}
        for key, entry in validators.an_object(settings["services"], here).items():
            application_id = read_application_key(key, here)
            place = f"{here}.{application_id}"
            warnings += validators.unknown(validators.an_object(entry, place), frozenset(("groups",)), place)
            items = validators.an_array(entry.get("groups", []), f"{place}.groups", MAX_ACTIONS)
            read = [_read_action(item, f"{place}.groups[{at}]", warnings) for at, item in enumerate(items)]
            found["services"][str(application_id)] = {"groups": read}
    return found, warnings


def read_project_fields(project_id: str, data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields of a project that ``data`` contains, ready to store, and warnings. The id never changes."""
    fields: dict[str, Any] = {}
    warnings: list[str] = []
    if "title" in data:
        project_id_from_title(data["title"], "title")
        fields["title"] = data["title"]
    if "description" in data:
        fields["description"] = validators.text(data["description"], "description")
    if "aliases" in data:
        fields["aliases"] = list(read_aliases(data["aliases"], project_id))
    if "settings" in data:
        fields["settings"], warnings = read_project_settings(data["settings"])
    return fields, warnings


def _read_action(item: object, where: str, warnings: list[str]) -> dict[str, Any]:
    action = validators.an_object(item, where)
    for name in ("group_id", "role", "action"):
        if name not in action:
            raise InvalidInput(f"{where}.{name}: is required")
    warnings += validators.unknown(action, _ACTION, where)
    if action["action"] not in ("grant", "revoke"):
        raise InvalidInput(f'{where}.action: must be "grant" or "revoke"')
    return {
        "group_id": read_group_id(action["group_id"], f"{where}.group_id"),
        "role": read_segment(action["role"], f"{where}.role"),
        "action": action["action"],
    }


def check_services(
    services: Mapping[str, Any],
    has: ProjectResources,
    applications: Mapping[int, CompiledApplication],
    where: str = "settings.services",
) -> None:
    """Every application and group is the project's own, every role exists, and no protected one is granted."""
    for key, entry in services.items():
        if int(key) not in has.applications:
            raise InvalidInput(f"{where}.{key}: is no application of this project")
        roles = applications[int(key)].roles
        for at, action in enumerate(entry["groups"]):
            here = f"{where}.{key}.groups[{at}]"
            if action["group_id"] not in has.groups:
                raise InvalidInput(f"{here}.group_id: is no group of this project")
            role = roles.get(action["role"])
            if role is None:
                raise InvalidInput(f"{here}.role: there is no role {action['role']}")
            if action["action"] == "grant" and not assignable_through_project(role, generic=False):
                raise InvalidInput(f"{here}.role: a protected role cannot be granted through a project")


def read_member_roles(
    value: object, has: ProjectResources, central: CompiledApplication, where: str = "roles"
) -> tuple[dict[str, Any], list[str]]:
    """One user's roles in a project, ready to store: generic roles, at places that are the project's own."""
    fields = validators.an_object(value, where)
    warnings = validators.unknown(fields, _LEVELS, where)
    places: Mapping[str, Collection[Any]] = {
        "applications": has.applications,
        "services": has.services,
        "groups": has.groups,
    }
    found: dict[str, Any] = {}
    if "project" in fields:
        found["project"] = _read_given(fields["project"], central, f"{where}.project", warnings)
    for level, existing in places.items():
        if level not in fields:
            continue
        here = f"{where}.{level}"
        found[level] = {}
        for key, items in validators.an_object(fields[level], here).items():
            resource = read_group_id(key, here) if level == "groups" else read_application_key(key, here)
            if resource not in existing:
                raise InvalidInput(f"{here}.{resource}: does not belong to this project")
            found[level][str(resource)] = _read_given(items, central, f"{here}.{resource}", warnings)
    return found, warnings


def _read_given(value: object, central: CompiledApplication, where: str, warnings: list[str]) -> list[dict[str, Any]]:
    assignments, more = read_assignments(value, where=where)
    warnings += more
    check_roles_exist(assignments, central.roles, where)
    for assignment in assignments:
        role = central.roles[assignment.name]
        if role.protected:
            raise InvalidInput(f"{where}: {role.name} is protected and cannot be assigned through a project")
        if not assignable_through_project(role, generic=True):
            raise InvalidInput(f"{where}: {role.name} holds root rules and cannot be assigned through a project")
    return stored(assignments)


def read_group_list(value: object, has: ProjectResources, where: str) -> list[str]:
    """An allow or disallow list: groups of this project that carry the tag ``project``."""
    found = unique(
        read_group_id(item, f"{where}[{at}]") for at, item in enumerate(validators.an_array(value, where, MAX_LIST))
    )
    for item in found:
        if item not in has.groups:
            raise InvalidInput(f"{where}: {item} is no group of this project")
        if PROJECT_TAG not in has.groups[item]:
            raise InvalidInput(f"{where}: {item} lacks the tag {PROJECT_TAG}")
    return list(found)


def read_group_users(value: object, where: str = "users") -> list[str]:
    """Explicit members of a group, each counted once; they need not exist."""
    items = validators.an_array(value, where)
    for at, item in enumerate(items):
        if not isinstance(item, str) or not is_user_id(item):
            raise InvalidInput(f"{where}[{at}]: must be a user id")
    found = unique(items)
    if len(found) > MAX_GROUP_USERS:
        raise InvalidInput(f"{where}: must be at most {MAX_GROUP_USERS} users")
    return list(found)
