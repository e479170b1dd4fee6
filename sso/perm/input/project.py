"""The settings of a project in requests (§2.4): allowed domains, and roles granted to groups or revoked from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, FailFast, Field

from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.errors import InvalidInput
from sso.perm.input.field_types import ApplicationKey, Domains, GroupId, Segment, Title
from sso.perm.input.model import InputModel, read_record
from sso.perm.input.names import project_id_from_title, read_aliases

MAX_ACTIONS = 1000


class GroupActionFields(InputModel):
    group_id: GroupId
    role: Segment
    action: Literal["grant", "revoke"]


class ServiceFields(InputModel):
    groups: Annotated[list[GroupActionFields], FailFast(), Field(max_length=MAX_ACTIONS)] = Field(default_factory=list)


class ProjectSettings(InputModel):
    allowed_domains: Domains = Field(default_factory=list)
    services: dict[ApplicationKey, ServiceFields] = Field(default_factory=dict)


class ProjectFields(InputModel):
    model_config = ConfigDict(extra="ignore")  # callers warn about unknown fields of the record itself

    title: Title = ""
    description: str = ""
    aliases: list[Any] = Field(default_factory=list)  # see `read_aliases`
    settings: ProjectSettings = ProjectSettings()


@dataclass(frozen=True)
class ProjectResources:
    """The resources of a project. Its settings and memberships may name no others."""

    applications: frozenset[int] = frozenset()  # not removed
    services: frozenset[int] = frozenset()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # with their tags

    @classmethod
    def of(cls, project: ProjectFacts) -> "ProjectResources":
        applications = [item for item in project.applications if not item.removed and item.id != CENTRAL_APPLICATION_ID]
        return cls(
            frozenset(item.id for item in applications),
            frozenset(item.id for item in applications if item.is_service),
            {group.id: group.tags for group in project.groups},
        )


def read_project_settings(value: object, where: str = "settings") -> tuple[dict[str, Any], list[str]]:
    """The settings that were given, and warnings. `check_services` checks the resources and roles that they name."""
    settings, warnings = read_record(ProjectSettings, value, where)
    _complete_services(settings)
    return settings, warnings


def _complete_services(settings: dict[str, Any]) -> None:
    for service in settings.get("services", {}).values():
        service.setdefault("groups", [])


def read_project_fields(project_id: str, data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields of a project that were given, ready to store, and warnings. The id never changes."""
    fields, warnings = read_record(ProjectFields, data)
    if "title" in fields:
        project_id_from_title(fields["title"], "title")
    if "aliases" in fields:
        fields["aliases"] = list(read_aliases(fields["aliases"], project_id))
    if "settings" in fields:
        _complete_services(fields["settings"])
    return fields, warnings


def check_services(
    services: Mapping[str, Any],
    resources: ProjectResources,
    applications: Mapping[int, CompiledApplication],
    where: str = "settings.services",
) -> None:
    """Raises InvalidInput if an application or group is not the project's own, a role does not exist, or a protected
    role is granted."""
    for key, service in services.items():
        if int(key) not in resources.applications:
            raise InvalidInput(f"{where}.{key}: is no application of this project")
        roles = applications[int(key)].roles
        for index, action in enumerate(service["groups"]):
            path = f"{where}.{key}.groups[{index}]"
            if action["group_id"] not in resources.groups:
                raise InvalidInput(f"{path}.group_id: is no group of this project")
            role = roles.get(action["role"])
            if role is None:
                raise InvalidInput(f"{path}.role: there is no role {action['role']}")
            if action["action"] == "grant" and not assignable_through_project(role, generic=False):
                raise InvalidInput(f"{path}.role: a protected role cannot be granted through a project")
