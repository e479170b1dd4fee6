"""The table of required permissions (§5.5), and the one function that reads it.

Any one alternative of a row suffices. Role ``root`` of the central application has every right everywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from sso.perm.engine.rights import Rights


class Operation(Enum):
    APPLICATION_GET = auto()
    APPLICATION_SAVE = auto()
    APPLICATION_CREATE_IN_PROJECT = auto()
    APPLICATION_CREATE = auto()  # outside a project
    APPLICATION_DELETE = auto()
    APPLICATION_SERVICE_META = auto()  # and its tags
    PUBLISH = auto()
    PROJECT_GET = auto()
    PROJECT_SAVE = auto()
    PROJECT_DELETE = auto()
    MEMBERSHIP_GET = auto()
    MEMBERSHIP_SAVE = auto()
    GROUP_GET = auto()  # asked for each group
    GROUP_SAVE = auto()  # and its tags
    GROUP_DELETE = auto()
    GROUP_ACCESS = auto()
    ACCESS_KEY = auto()
    ROLE_READ = auto()
    ROLE_LIST = auto()
    ROLE_MODIFY = auto()
    SCHEMA_READ = auto()
    SCHEMA_MODIFY = auto()


@dataclass(frozen=True)
class Root:
    """A root rule."""

    rule: str


@dataclass(frozen=True)
class InProject:
    """A rule over the project of the request."""

    rule: str


@dataclass(frozen=True)
class OnApplication:
    rule: str


@dataclass(frozen=True)
class OnGroup:
    rule: str


@dataclass(frozen=True)
class Secret:
    """A rule of ``secret_data.application`` of the application of the request."""

    rule: str


@dataclass(frozen=True)
class AnyApplicationRole:
    """Any role in the applications section suffices to view."""


Alternative: TypeAlias = Root | InProject | OnApplication | OnGroup | Secret | AnyApplicationRole

_MANAGE_APPLICATIONS = InProject("project.can_manage_applications")
_MANAGE_GROUPS = InProject("project.can_manage_groups")
_MANAGE_GROUP = OnGroup("group.can_manage_group")
_VIEW = InProject("project.can_view_project")
_MANAGE = InProject("project.can_manage_project")

REQUIRED: Mapping[Operation, tuple[Alternative, ...]] = {
    Operation.APPLICATION_GET: (_MANAGE_APPLICATIONS, Secret("canRead"), AnyApplicationRole()),
    Operation.APPLICATION_SAVE: (_MANAGE_APPLICATIONS, Secret("canSave")),
    Operation.APPLICATION_CREATE_IN_PROJECT: (_MANAGE_APPLICATIONS,),
    Operation.APPLICATION_CREATE: (Root("can_create_app"),),
    Operation.APPLICATION_DELETE: (Root("can_remove_apps"), _MANAGE_APPLICATIONS),
    Operation.APPLICATION_SERVICE_META: (Root("can_publish_services"),),
    Operation.PUBLISH: (Root("can_create_projects"),),
    Operation.PROJECT_GET: (_VIEW,),
    Operation.PROJECT_SAVE: (_MANAGE,),
    Operation.PROJECT_DELETE: (InProject("project.can_remove_project"),),
    Operation.MEMBERSHIP_GET: (_VIEW,),
    Operation.MEMBERSHIP_SAVE: (_MANAGE,),
    Operation.GROUP_GET: (_MANAGE_GROUP,),
    Operation.GROUP_SAVE: (_MANAGE_GROUPS,),
    Operation.GROUP_DELETE: (_MANAGE_GROUPS,),
    Operation.GROUP_ACCESS: (_MANAGE_GROUP,),
    Operation.ACCESS_KEY: (Secret("canCreateJwt"), OnApplication("app.can_manage_app_api_keys")),
    Operation.ROLE_READ: (Secret("canReadSchema"),),
    Operation.ROLE_LIST: (Secret("canSeeRoleList"), Secret("canReadSchema")),
    Operation.ROLE_MODIFY: (Secret("canModifySchema"), _MANAGE_APPLICATIONS),
    Operation.SCHEMA_READ: (Secret("canReadSchema"),),
    Operation.SCHEMA_MODIFY: (Secret("canModifySchema"),),
}


ROOT_RULES = frozenset(
    alternative.rule for row in REQUIRED.values() for alternative in row if isinstance(alternative, Root)
)


def missing_rights(operation: Operation) -> str:
    """Which rights would allow the operation, for the caller who has none of them."""
    named = [
        "a role on the application" if isinstance(alternative, AnyApplicationRole) else alternative.rule
        for alternative in REQUIRED[operation]
    ]
    return f"{any_of(named)} is required"


def any_of(names: Sequence[str]) -> str:
    """``a, b or c``."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def allowed(
    operation: Operation,
    rights: Rights,
    *,
    project_id: str | None = None,
    application_id: int | None = None,
    group_id: str | None = None,
) -> bool:
    """Whether the caller may do it to this project, application or group. `project_id` is where the record belongs."""
    if rights.is_root:
        return True
    for alternative in REQUIRED[operation]:
        match alternative:
            case Root(rule):
                held = rights.root_rule(rule)
            case Secret(rule):
                held = rule in rights.secret.application
            case InProject(rule):
                held = project_id is not None and rights.at(project_id, "project", "", rule)
            case OnApplication(rule):
                held = project_id is not None and rights.at(project_id, "applications", str(application_id), rule)
            case OnGroup(rule):
                held = project_id is not None and rights.at(project_id, "groups", str(group_id), rule)
            case AnyApplicationRole():
                held = project_id is not None and rights.any_role_at(project_id, "applications", str(application_id))
        if held:
            return True
    return False
