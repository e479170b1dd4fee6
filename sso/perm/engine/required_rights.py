"""The table of required permissions (§5.5), and `is_allowed`, the only function that reads it.

Any one alternative of a row is sufficient. The role ``root`` of the central application has every right everywhere.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import TypeAlias

from msgspec import Struct

from sso.perm.engine.management_rights import (
    MANAGE_APPLICATIONS,
    MANAGE_PROJECTS,
    VIEW_APPLICATIONS,
    VIEW_PROJECTS,
)
from sso.perm.engine.rights import Rights


class Operation(Enum):
    APPLICATION_GET = auto()
    APPLICATION_GET_FULL = auto()  # with its settings and service metadata
    APPLICATION_SAVE = auto()
    APPLICATION_CREATE_IN_PROJECT = auto()
    APPLICATION_CREATE = auto()  # in no project
    APPLICATION_MOVE = auto()  # from or to no project
    APPLICATION_DELETE = auto()
    APPLICATION_SERVICE_META = auto()  # and the tags of the application
    PUBLISH = auto()
    PROJECT_GET = auto()
    PROJECT_SAVE = auto()
    PROJECT_DELETE = auto()
    MEMBERSHIP_GET = auto()
    MEMBERSHIP_SAVE = auto()
    GROUP_GET = auto()  # checked for each group
    GROUP_SAVE = auto()  # and the tags of the group
    GROUP_DELETE = auto()
    GROUP_ACCESS = auto()
    ACCESS_KEY = auto()
    ACCESS_KEY_LIST = auto()
    ROLE_READ = auto()
    ROLE_LIST = auto()
    ROLE_MODIFY = auto()
    SCHEMA_READ = auto()
    SCHEMA_MODIFY = auto()
    SCHEMA_SECRET_DATA = auto()  # the rules that the service itself reads
    USER_BAN = auto()  # in a project, or at an application


class Root(Struct, frozen=True):
    """A root rule of the central application."""

    rule: str


class InProject(Struct, frozen=True):
    """A rule at project level, at the project of the request."""

    rule: str


class OnApplication(Struct, frozen=True):
    """A rule at the application of the request."""

    rule: str


class OnGroup(Struct, frozen=True):
    """A rule at the group of the request."""

    rule: str


class Secret(Struct, frozen=True):
    """A rule of ``secret_data.application`` of the application of the request."""

    rule: str


class AnyApplicationRole(Struct, frozen=True):
    """Any role at the application of the request."""


class Management(Struct, frozen=True):
    """One of these rights of the management API. They count only there, and never at the central application."""

    rights: tuple[str, ...]


Alternative: TypeAlias = Root | InProject | OnApplication | OnGroup | Secret | AnyApplicationRole | Management

_MANAGE_APPLICATIONS = InProject("project.can_manage_applications")
_MANAGE_GROUPS = InProject("project.can_manage_groups")
_MANAGE_GROUP = OnGroup("group.can_manage_group")
_VIEW = InProject("project.can_view_project")
_MANAGE = InProject("project.can_manage_project")
_ACCESS_KEY = (Secret("canCreateJwt"), OnApplication("app.can_manage_app_api_keys"))
_VIEW_ALL_APPLICATIONS = Management((VIEW_APPLICATIONS, MANAGE_APPLICATIONS))
_MANAGE_ALL_APPLICATIONS = Management((MANAGE_APPLICATIONS,))
_VIEW_ALL_PROJECTS = Management((VIEW_PROJECTS, MANAGE_PROJECTS))
_MANAGE_ALL_PROJECTS = Management((MANAGE_PROJECTS,))

REQUIRED: Mapping[Operation, tuple[Alternative, ...]] = {
    Operation.APPLICATION_GET: (
        _MANAGE_APPLICATIONS,
        Secret("canRead"),
        AnyApplicationRole(),
        _VIEW_ALL_APPLICATIONS,
    ),
    Operation.APPLICATION_GET_FULL: (_MANAGE_APPLICATIONS, Secret("canSave"), _VIEW_ALL_APPLICATIONS),
    Operation.APPLICATION_SAVE: (_MANAGE_APPLICATIONS, Secret("canSave"), _MANAGE_ALL_APPLICATIONS),
    Operation.APPLICATION_CREATE_IN_PROJECT: (_MANAGE_APPLICATIONS, _MANAGE_ALL_APPLICATIONS),
    Operation.APPLICATION_CREATE: (Root("can_create_app"), _MANAGE_ALL_APPLICATIONS),
    Operation.APPLICATION_MOVE: (_MANAGE_ALL_APPLICATIONS,),
    Operation.APPLICATION_DELETE: (Root("can_remove_apps"), _MANAGE_APPLICATIONS, _MANAGE_ALL_APPLICATIONS),
    Operation.APPLICATION_SERVICE_META: (Root("can_publish_services"), _MANAGE_ALL_APPLICATIONS),
    Operation.PUBLISH: (Root("can_create_projects"), _MANAGE_ALL_PROJECTS),
    Operation.PROJECT_GET: (_VIEW, _VIEW_ALL_PROJECTS),
    Operation.PROJECT_SAVE: (_MANAGE, _MANAGE_ALL_PROJECTS),
    Operation.PROJECT_DELETE: (InProject("project.can_remove_project"), _MANAGE_ALL_PROJECTS),
    Operation.MEMBERSHIP_GET: (_VIEW, _VIEW_ALL_PROJECTS),
    Operation.MEMBERSHIP_SAVE: (_MANAGE, _MANAGE_ALL_PROJECTS),
    Operation.GROUP_GET: (_MANAGE_GROUP, _VIEW_ALL_PROJECTS),
    Operation.GROUP_SAVE: (_MANAGE_GROUPS, _MANAGE_ALL_PROJECTS),
    Operation.GROUP_DELETE: (_MANAGE_GROUPS, _MANAGE_ALL_PROJECTS),
    Operation.GROUP_ACCESS: (_MANAGE_GROUP, _MANAGE_ALL_PROJECTS),
    Operation.ACCESS_KEY: (*_ACCESS_KEY, _MANAGE_ALL_APPLICATIONS),
    Operation.ACCESS_KEY_LIST: (*_ACCESS_KEY, _VIEW_ALL_APPLICATIONS),
    Operation.ROLE_READ: (Secret("canReadSchema"), _VIEW_ALL_APPLICATIONS),
    Operation.ROLE_LIST: (Secret("canSeeRoleList"), Secret("canReadSchema"), _VIEW_ALL_APPLICATIONS),
    Operation.ROLE_MODIFY: (Secret("canModifySchema"), _MANAGE_APPLICATIONS, _MANAGE_ALL_APPLICATIONS),
    Operation.SCHEMA_READ: (Secret("canReadSchema"), _VIEW_ALL_APPLICATIONS),
    Operation.SCHEMA_MODIFY: (Secret("canModifySchema"), _MANAGE_ALL_APPLICATIONS),
    Operation.SCHEMA_SECRET_DATA: (_MANAGE_ALL_APPLICATIONS,),
    Operation.USER_BAN: (InProject("project.can_ban_users"), OnApplication("app.can_ban_users")),
}
# The rules over the whole service that are alternatives in the table.
ROOT_RULES = frozenset(item.rule for row in REQUIRED.values() for item in row if isinstance(item, Root))
# The rules within a project that are alternatives in the table, by level.
PROJECT_RULES: Mapping[str, frozenset[str]] = {
    level: frozenset(item.rule for row in REQUIRED.values() for item in row if isinstance(item, kind))
    for level, kind in (("project", InProject), ("applications", OnApplication), ("groups", OnGroup))
}


def missing_rights(operation: Operation, *, in_management: bool = False) -> str:
    """Returns the text of the error for a caller who has none of the rights that would allow the operation."""
    names: list[str] = []
    for alternative in REQUIRED[operation]:
        match alternative:
            case Management(rights):
                names += rights[:1] if in_management else ()
            case AnyApplicationRole():
                names.append("a role on the application")
            case _:
                names.append(alternative.rule)
    return f"{join_alternatives(names or ['the role root'])} is required"


def join_alternatives(names: Sequence[str]) -> str:
    """``a, b or c``."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def is_allowed(
    operation: Operation,
    rights: Rights,
    *,
    project_id: str | None = None,
    application_id: int | None = None,
    group_id: str | None = None,
) -> bool:
    """Returns whether the caller may do the operation on this project, application or group.

    ``project_id`` is the project that the application or group belongs to.
    """
    if rights.is_root:
        return True
    application = str(application_id)
    for alternative in REQUIRED[operation]:
        match alternative:
            case Management(names):
                held = not rights.management.isdisjoint(names)
            case Root(rule):
                held = rights.has_root_rule(rule)
            case Secret(rule):
                held = rule in rights.secret.application
            case InProject(rule):
                held = project_id is not None and rights.has_rule_at(project_id, "project", "", rule)
            case OnApplication(rule):
                held = project_id is not None and rights.has_rule_at(project_id, "applications", application, rule)
            case OnGroup(rule):
                held = project_id is not None and rights.has_rule_at(project_id, "groups", str(group_id), rule)
            case AnyApplicationRole():
                held = project_id is not None and rights.has_role_at(project_id, "applications", application)
        if held:
            return True
    return False
