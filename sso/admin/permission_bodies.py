"""The bodies of requests that change permissions. The fields are those of ``sso apply``.

A field with a default is optional, and the default is not used: a request changes the fields that it has. The
permission endpoints check what depends on stored records.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from sso.admin.request import EntryId, JsonRecord
from sso.perm.input.access_keys import AccessKeyFields, KeyValue
from sso.perm.input.application import ApplicationFields
from sso.perm.input.field_types import ApplicationId, GroupId, Number, Segment, Title, UserName, Word
from sso.perm.input.groups import GroupAttributes
from sso.perm.input.project import NamedProjectFields
from sso.perm.input.roles import RoleAttributes
from sso.web.body import JSON
from sso.web.request_model import JsonObject, RequestModel, at_most

UserId = Annotated[str, at_most(64, at_least=1)]


class PermissionBody(RequestModel):
    model_config = ConfigDict(extra="forbid")

    override: bool = False  # make the change even if an assertion fails

    def given(self, *without: str) -> JsonRecord:
        """The fields that the request has."""
        return self.model_dump(exclude_unset=True, exclude={"override", *without})


class ApplicationChanges(ApplicationFields, PermissionBody):
    model_config = ConfigDict(extra="forbid")


class NewApplication(ApplicationChanges):
    application_id: ApplicationId | None = None  # chosen by root only; otherwise the next free one
    name: Word


class SchemaChanges(PermissionBody):
    login: JsonObject = Field(default_factory=dict)
    public_data: JsonObject = Field(default_factory=dict)
    private_data: JsonObject = Field(default_factory=dict)
    secret_data: JsonObject = Field(default_factory=dict)
    roles: JsonObject = Field(default_factory=dict)


class RoleChanges(RoleAttributes, PermissionBody):
    model_config = ConfigDict(extra="forbid")


class NewRole(RoleChanges):
    application_id: ApplicationId
    name: Segment
    undo_of: EntryId | None = None  # the audit entry of a deletion, which is undone: its users and groups have it again


class AccessKeyChanges(AccessKeyFields, PermissionBody):
    model_config = ConfigDict(extra="forbid")


class NewAccessKey(AccessKeyChanges):
    application_id: ApplicationId
    hash: KeyValue | None = None  # chosen by root only; otherwise a random one


class ProjectChanges(NamedProjectFields, PermissionBody):
    model_config = ConfigDict(extra="forbid")

    allow: list[GroupId] = Field(default_factory=list)
    disallow: list[GroupId] = Field(default_factory=list)


class NewProject(NamedProjectFields, PermissionBody):
    model_config = ConfigDict(extra="forbid")

    title: Title
    admins: Annotated[list[UserName], Field(max_length=100)] = Field(default_factory=list)


class MemberChanges(PermissionBody):
    roles: JsonObject


class NewMember(MemberChanges):
    user_id: UserId = ""
    login: Annotated[str, at_most(320)] = ""  # instead of user_id


class GroupChanges(GroupAttributes, PermissionBody):
    model_config = ConfigDict(extra="forbid")


class NewGroup(GroupChanges):
    group_id: GroupId | None = None  # the group that was deleted had it
    undo_of: EntryId | None = None  # the audit entry of the deletion, which is undone: the group has its roles again
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
