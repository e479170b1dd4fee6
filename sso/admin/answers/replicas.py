"""The shapes of what a replica of an application reads."""

from typing import Any, TypeAlias

from typing_extensions import TypedDict


class ReplicaDefinitionJson(TypedDict):
    """The schema, the roles and the project of an application."""

    application_id: int
    name: str
    removed: bool
    revision: int
    schema: dict[str, Any]
    roles: list[dict[str, Any]]
    project: dict[str, Any] | None


class NamedAttributesJson(TypedDict):
    """The attributes of users that conditions of the application name. Rows of users have no others."""

    project_id: str | None
    domains: list[str]
    tags: list[str]
    purchases: list[str]


# User id, domain, tags, purchases, guest, bans, own data, roles, groups; and the user whom this one was merged into.
ReplicaUserJson: TypeAlias = list[Any]
