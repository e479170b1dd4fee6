"""The settings of a project in requests (§2.4): allowed domains, and roles granted to groups or revoked from them."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, FailFast, Field

from sso.core.field_errors import FieldPath
from sso.perm.input.field_types import ApplicationKey, DisplayName, Domains, GroupId, Segment, Title, UserName
from sso.perm.input.model import InputModel, read_record
from sso.perm.input.names import project_id_from_title, read_aliases
from sso.web.request_model import at_most

MAX_ACTIONS = 1000


def _check_array(value: object) -> object:
    if not isinstance(value, list):
        raise ValueError("must be an array of strings")  # noqa: TRY004 - a check raises one kind of error
    return value


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
    aliases: Annotated[list[Segment], FailFast(), BeforeValidator(_check_array)] = Field(default_factory=list)
    settings: ProjectSettings = Field(default_factory=ProjectSettings)


class NamedProjectFields(ProjectFields):
    """The fields of the management API and of documents. The endpoints of the specification have no display name."""

    display_name: DisplayName = ""  # shown to people in place of the title


class ProjectRecord(NamedProjectFields):
    """A project in a document. The id is derived from the title; it is named only if the title was changed later."""

    id: Title = ""
    title: Title
    admins: list[UserName] = Field(default_factory=list)
    author: Annotated[str, at_most(320)] = ""  # a user id or a login


def read_project_settings(value: object, path: FieldPath = ("settings",)) -> tuple[dict[str, Any], list[str]]:
    """The settings that were given, and warnings. `check_services` checks the resources and roles that they name."""
    settings, warnings = read_record(ProjectSettings, value, path)
    _complete_services(settings)
    return settings, warnings


def _complete_services(settings: dict[str, Any]) -> None:
    for service in settings.get("services", {}).values():
        service.setdefault("groups", [])


def read_project_fields(
    project_id: str, data: object, path: FieldPath = (), model: type[ProjectFields] = ProjectFields
) -> tuple[dict[str, Any], list[str]]:
    """The fields of a project that were given, ready to store, and warnings. The id never changes."""
    fields, warnings = read_record(model, data, path)
    if "title" in fields:
        project_id_from_title(fields["title"], (*path, "title"))
    if "aliases" in fields:
        fields["aliases"] = list(read_aliases(fields["aliases"], project_id, (*path, "aliases")))
    if "settings" in fields:
        _complete_services(fields["settings"])
    return fields, warnings
