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


class LimitedRole(TypedDict):
    """A role that ends."""

    name: str
    expired: NotRequired[int]
    ttl: NotRequired[int]


AssignedRole: TypeAlias = str | LimitedRole


class _ApplicationFields(TypedDict):
    application_id: int
    project_id: str | None
    settings: NotRequired[dict[str, Any]]
    service_meta: NotRequired[dict[str, Any]]
    removed: bool


APPLICATION = RecordShape("Application", ApplicationChanges, _ApplicationFields)


class ApplicationKey(TypedDict):
    kid: str
    algorithm: str
    public_key: str


class ServiceJwt(TypedDict):
    application_id: int
    service_jwt: str


class EmailSecret(TypedDict):
    application_id: int
    email_secret: str


class Assertions(TypedDict):
    application_id: int
    assertions: list[str]


class FailedAssertion(TypedDict):
    application_id: int
    assertion: str
    reason: str
    users: list[str]


class AssertionReport(TypedDict):
    checked: int
    failed: list[FailedAssertion]
    warnings: list[str]


class _RoleFields(TypedDict):
    application_id: int
    name: str
    condition: dict[str, Any]


ROLE = RecordShape("Role", RoleChanges, _RoleFields)


class SchemaRole(TypedDict):
    """A role in a schema."""

    name: str
    meta: dict[str, Any]
    description: str
    protected: bool
    default: bool
    condition: dict[str, Any]
    user_limit: int
    params: str


class _SchemaFields(TypedDict):
    application_id: int
    roles: NotRequired[dict[str, SchemaRole]]
    version: int
    updated_at: int


SCHEMA = RecordShape("Schema", SchemaChanges, _SchemaFields)


class _AccessKeyFields(TypedDict):
    id: str
    application_id: int
    created: Time
    modified: Time
    last_used: NotRequired[Time]
    hash: NotRequired[str]


ACCESS_KEY = RecordShape("AccessKey", AccessKeyChanges, _AccessKeyFields)


class _ProjectFields(TypedDict):
    id: str
    tags: list[str]
    settings: dict[str, Any]
    author: str
    created: Time
    removed: bool
    applications: NotRequired[int]
    groups: NotRequired[int]
    members: NotRequired[int]


PROJECT = RecordShape("Project", ProjectChanges, _ProjectFields)


class MemberRoles(TypedDict):
    """The roles of a member: at the project, and at applications, services and groups of it by their ids."""

    project: NotRequired[list[AssignedRole]]
    applications: NotRequired[dict[str, list[AssignedRole]]]
    services: NotRequired[dict[str, list[AssignedRole]]]
    groups: NotRequired[dict[str, list[AssignedRole]]]


class Member(TypedDict):
    user_id: str
    roles: MemberRoles
    login: NotRequired[str]


class MemberRole(TypedDict):
    name: str
    description: str


class _GroupFields(TypedDict):
    group_id: str
    project_id: str


GROUP = RecordShape("Group", GroupChanges, _GroupFields)


class RoleHolder(TypedDict):
    role: str
    user_id: str
    expired: int
    ttl: int
    login: NotRequired[str]


class _AssignmentFields(TypedDict):
    user_id: str
    application_id: int
    roles: NotRequired[list[AssignedRole]]


_SECTIONS = ("login", "public_data", "private_data", "secret_data")
ASSIGNMENT = RecordShape("Assignment", AssignedData, _AssignmentFields, optional=_SECTIONS)


class AssignedApplication(TypedDict):
    application_id: int
    name: str
    roles: list[LimitedRole]


class JoinedProject(TypedDict):
    project_id: str
    title: str
    roles: MemberRoles


class Assignments(TypedDict):
    applications: list[AssignedApplication]
    projects: list[JoinedProject]


class ConditionFacts(TypedDict):
    user_id: str
    domain: str
    tags: list[str]
    purchases: list[str]
    address: str


class ComparedMember(TypedDict):
    member: str
    asked: Any
    found: Any
    holds: bool
    decides: bool


class JudgedCondition(TypedDict):
    title: str
    holds: bool
    compared: list[ComparedMember]


class ConditionTest(TypedDict):
    holds: bool
    conditions: list[JudgedCondition]
    user: ConditionFacts
    added: NotRequired[bool]


class PermissionChange(TypedDict):
    """The permissions that a user would gain and lose."""

    user_id: str
    application_id: NotRequired[int]
    gained: list[str]
    lost: list[str]


# The members of an answer to a dry run.
IMPACT: dict[str, Any] = {
    "dry_run": bool,
    "users": list[PermissionChange],
    "total": int,
    "exact": bool,
    "failed_assertions": list[FailedAssertion],
}
