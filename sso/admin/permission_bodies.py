"""The bodies of requests that change permissions. The fields are those of ``sso apply``.

A field with a default is optional, and the default is not used: a request changes the fields that it has. The
permission endpoints check what depends on stored records.
"""

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, FailFast, Field

from sso.admin.request import JsonRecord
from sso.perm.input.application import ApplicationSettings, ServiceMeta
from sso.perm.input.field_types import ApplicationId, GroupId, Number, Params, Segment, Tags, Title, Word
from sso.perm.input.groups import MAX_CONDITIONS, MAX_GROUP_USERS, GroupConditionFields
from sso.perm.input.project import ProjectSettings
from sso.web.body import JSON
from sso.web.request_model import JsonObject, RequestModel, at_most

UserId = Annotated[str, at_most(64, at_least=1)]
UserName = Annotated[str, at_most(320, at_least=1)]  # a user id or a login


class PermissionBody(RequestModel):
    model_config = ConfigDict(extra="forbid")

    override: bool = False  # make the change even if an assertion fails

    def given(self, *without: str) -> JsonRecord:
        """The fields that the request has."""
        return self.model_dump(exclude_unset=True, exclude={"override", *without})


class ApplicationChanges(PermissionBody):
    name: Word = ""
    description: str = ""
    project_id: Annotated[Annotated[str, at_most(64)] | None, AfterValidator(lambda value: value or None)] = None
    settings: ApplicationSettings = ApplicationSettings()
    service_meta: ServiceMeta = ServiceMeta()


class NewApplication(ApplicationChanges):
    application_id: ApplicationId | None = None  # chosen by root only; otherwise the next free one
    name: Word


class SchemaChanges(PermissionBody):
    login: JsonObject = Field(default_factory=dict)
    public_data: JsonObject = Field(default_factory=dict)
    private_data: JsonObject = Field(default_factory=dict)
    secret_data: JsonObject = Field(default_factory=dict)
    roles: JsonObject = Field(default_factory=dict)


class RoleChanges(PermissionBody):
    meta: JsonObject = Field(default_factory=dict)
    description: str = ""
    protected: bool = False
    default: bool = False
    condition: JsonObject | None = None
    user_limit: Number = 0
    params: Params = ""


class NewRole(RoleChanges):
    application_id: ApplicationId
    name: Segment


class AccessKeyChanges(PermissionBody):
    comment: Annotated[str, at_most(256)] = ""


class NewAccessKey(AccessKeyChanges):
    application_id: ApplicationId
    hash: Annotated[str, at_most(512, at_least=32)] | None = None  # chosen by root only; otherwise a random one


class ProjectChanges(PermissionBody):
    title: Title = ""
    description: str = ""
    aliases: list[Segment] = Field(default_factory=list)
    settings: ProjectSettings = ProjectSettings()
    allow: list[GroupId] = Field(default_factory=list)
    disallow: list[GroupId] = Field(default_factory=list)


class NewProject(PermissionBody):
    title: Title
    description: str = ""
    aliases: list[Segment] = Field(default_factory=list)
    settings: ProjectSettings = ProjectSettings()
    admins: Annotated[list[UserName], Field(max_length=100)] = Field(default_factory=list)


class MemberChanges(PermissionBody):
    roles: JsonObject


class NewMember(MemberChanges):
    user_id: UserId = ""
    login: Annotated[str, at_most(320)] = ""  # instead of user_id


class GroupChanges(PermissionBody):
    title: Title = ""
    description: str = ""
    tags: Tags = Field(default_factory=list)
    conditions: Annotated[list[GroupConditionFields], FailFast(), Field(max_length=MAX_CONDITIONS)] = Field(
        default_factory=list
    )
    users: Annotated[list[UserId], FailFast(), Field(max_length=MAX_GROUP_USERS)] = Field(default_factory=list)


class NewGroup(GroupChanges):
    group_id: GroupId | None = None  # the group that was deleted had it
    project_id: Segment
    title: Title


class AssignedData(RequestModel):
    model_config = ConfigDict(extra="forbid")

    roles: list[JSON] = Field(default_factory=list)
    login: JsonObject = Field(default_factory=dict)
    public_data: JsonObject = Field(default_factory=dict)
    private_data: JsonObject = Field(default_factory=dict)
    secret_data: JsonObject = Field(default_factory=dict)


class AssignmentChanges(AssignedData, PermissionBody):
    application_id: ApplicationId
    data: AssignedData | None = None  # the sections, as in a document of `sso apply`
    expired: Number = 0  # for the roles and entries without an end of their own
