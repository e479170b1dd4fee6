"""The shapes of applications, schemas, roles, access keys, projects, members, groups and assignments."""

from typing import Any, NotRequired, TypeAlias

from typing_extensions import TypedDict

from sso.admin.answers.shape import RecordShape
from sso.admin.answers.users import Time
from sso.admin.permission_bodies import (
    AccessKeyChanges,
    ApplicationChanges,
    AssignedData,
    GroupChanges,
    ProjectChanges,
    RoleChanges,
    SchemaChanges,
)


class LimitedRoleJson(TypedDict):
    """A role that ends."""

    name: str
    expired: NotRequired[int]
    ttl: NotRequired[int]


AssignedRole: TypeAlias = str | LimitedRoleJson


class _ApplicationJson(TypedDict):
    application_id: int
    project_id: str | None
    removed: bool


_FOR_FULL_ACCESS = ("settings", "service_meta")
APPLICATION = RecordShape("Application", ApplicationChanges, _ApplicationJson, optional=_FOR_FULL_ACCESS)


class ApplicationKeyJson(TypedDict):
    kid: str
    algorithm: str
    public_key: str


class ServiceJwtJson(TypedDict):
    application_id: int
    service_jwt: str


class DataSecretJson(TypedDict):
    application_id: int
    data_secret: str


class EmailSecretJson(TypedDict):
    application_id: int
    email_secret: str


class AssertionsJson(TypedDict):
    application_id: int
    assertions: list[str]


class FailedAssertionJson(TypedDict):
    application_id: int
    assertion: str
    reason: str
    users: list[str]


class AssertionReportJson(TypedDict):
    checked: int
    failed: list[FailedAssertionJson]
    warnings: list[str]


class _RoleJson(TypedDict):
    application_id: int
    name: str
    condition: dict[str, Any]


ROLE = RecordShape("Role", RoleChanges, _RoleJson)


class SchemaRoleJson(TypedDict):
    """A role in a schema."""

    name: str
    meta: dict[str, Any]
    description: str
    protected: bool
    default: bool
    condition: dict[str, Any]
    user_limit: int
    params: str


class _SchemaJson(TypedDict):
    application_id: int
    roles: NotRequired[dict[str, SchemaRoleJson]]
    version: int
    updated_at: int


SCHEMA = RecordShape("Schema", SchemaChanges, _SchemaJson)


class _AccessKeyJson(TypedDict):
    id: str
    application_id: int
    created: Time
    modified: Time
    last_used: NotRequired[Time]
    hash: NotRequired[str]


ACCESS_KEY = RecordShape("AccessKey", AccessKeyChanges, _AccessKeyJson)


class _ProjectJson(TypedDict):
    id: str
    tags: list[str]
    author: str
    created: Time
    removed: bool
    applications: NotRequired[int]
    groups: NotRequired[int]
    members: NotRequired[int]


PROJECT = RecordShape("Project", ProjectChanges, _ProjectJson)


class MemberRolesJson(TypedDict):
    """The roles of a member: at the project, and at applications, services and groups of it by their ids."""

    project: NotRequired[list[AssignedRole]]
    applications: NotRequired[dict[str, list[AssignedRole]]]
    services: NotRequired[dict[str, list[AssignedRole]]]
    groups: NotRequired[dict[str, list[AssignedRole]]]


class MemberJson(TypedDict):
    user_id: str
    roles: MemberRolesJson
    login: NotRequired[str]


class MemberRoleJson(TypedDict):
    name: str
    description: str


class _GroupJson(TypedDict):
    group_id: str
    project_id: str


GROUP = RecordShape("Group", GroupChanges, _GroupJson)


class RuleHolderJson(TypedDict):
    user_id: str
    params: list[str]
    expires: int | None
    reason: NotRequired[dict[str, Any]]


class UserRuleJson(TypedDict):
    application_id: int
    rule: str
    params: list[str]
    expires: int | None
    reason: NotRequired[dict[str, Any]]


class RoleHolderJson(TypedDict):
    role: str
    user_id: str
    expired: int
    ttl: int
    login: NotRequired[str]


class _AssignmentJson(TypedDict):
    user_id: str
    application_id: int
    roles: NotRequired[list[AssignedRole]]


_SECTIONS = ("login", "public_data", "private_data", "secret_data")
ASSIGNMENT = RecordShape("Assignment", AssignedData, _AssignmentJson, optional=_SECTIONS)


class AssignedApplicationJson(TypedDict):
    application_id: int
    name: str
    roles: list[LimitedRoleJson]


class JoinedProjectJson(TypedDict):
    project_id: str
    title: str
    display_name: str
    roles: MemberRolesJson


class AssignmentsJson(TypedDict):
    applications: list[AssignedApplicationJson]
    projects: list[JoinedProjectJson]


class ConditionFactsJson(TypedDict):
    user_id: str
    domain: str
    tags: list[str]
    purchases: list[str]
    address: str


class ComparedMemberJson(TypedDict):
    member: str
    asked: Any
    found: Any
    holds: bool
    decides: bool


class JudgedConditionJson(TypedDict):
    title: str
    holds: bool
    compared: list[ComparedMemberJson]


class ConditionTestJson(TypedDict):
    holds: bool
    conditions: list[JudgedConditionJson]
    user: ConditionFactsJson
    added: NotRequired[bool]


class ConditionMatchesJson(TypedDict):
    total: int
    exact: bool
    examined: int
    users: list[str]


class ConditionSuggestionsJson(TypedDict):
    tag: list[str]
    purchase: list[str]
    domain: list[str]


class PermissionChangeJson(TypedDict):
    """The permissions that a user would gain and lose."""

    user_id: str
    application_id: NotRequired[int]
    gained: list[str]
    lost: list[str]


# The members of an answer to a dry run.
IMPACT: dict[str, Any] = {
    "dry_run": bool,
    "users": list[PermissionChangeJson],
    "total": int,
    "exact": bool,
    "failed_assertions": list[FailedAssertionJson],
}
