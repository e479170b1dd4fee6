"""The built-in central application (id 1): root rules, generic rules, roles; and the defaults of every schema.

Root rules are rights over the whole service. Generic rules are rights over a project, or over one of its
applications, services or groups; memberships of projects give them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.engine.reserved_names import ROOT_ROLE, SECTIONS
from sso.perm.input.schema import with_default_rules

CENTRAL_NAME = "Central"
ADMIN_ROLE = "admin"  # the role of the author and the target user of a published project

ROOT_RULES = {
    "can_create_projects": "Create projects. An integer parameter is the most projects of one author.",
    "can_create_app": "Create applications outside a project.",
    "can_remove_apps": "Remove any application.",
    "can_publish_services": "Change the service metadata and tags of applications.",
    "can_view_users": "See users, their sessions, games, second factors and permissions.",
    "can_manage_users": "Create, change, disable and delete users, end their sessions and reset their factors.",
    "can_ban_users": "Ban users everywhere, in any project and at any application, and lift bans.",
    "can_impersonate_users": "Open the account pages of players for some minutes, with a reason. They are told.",
    "can_view_audit": "See every entry of the audit trail.",
    "can_view_applications": "See all applications except the central one, their schemas, roles and assignments.",
    "can_manage_applications": "Change these applications, their schemas, roles, access keys and assignments.",
    "can_view_projects": "See all projects, their members and groups.",
    "can_manage_projects": "Create, change and remove projects and groups, and give members roles with these rights.",
    "can_view_clients": "See OAuth clients and identity providers.",
    "can_manage_clients": "Create, change and delete OAuth clients, and manage identity providers.",
    "can_view_keys": "See the signing keys.",
    "can_manage_keys": "Rotate and retire signing keys.",
    "can_view_game_sessions": "See the logins of games that are in progress.",
    "can_manage_game_sessions": "End the logins of games, also finished ones with their tokens.",
    "can_view_state": "Export the state of the service, and compare documents with it.",
    "can_manage_state": "Try out documents of desired state. Only root applies them.",
    "can_view_changes": "Read the stream of changes of permissions, users and keys.",
    "can_view_system": "See the state of the installation, and figures of what the service does.",
    "can_manage_webhooks": "Choose the addresses that these changes are sent to, and read the changes.",
}
GENERIC_RULES = {
    "project": {
        "can_view_project": "See the project and its membership.",
        "can_manage_project": "Change the project and its membership.",
        "can_remove_project": "Remove the project.",
        "can_manage_applications": "Create, change and remove the project's applications, and their roles.",
        "can_manage_groups": "Create, change, tag and remove the project's groups.",
        "can_ban_users": "Ban users in the project and at its applications, and lift such bans.",
    },
    "app": {
        "can_view_app": "See the application.",
        "can_manage_app_api_keys": "Create and remove the application's access keys.",
        "can_ban_users": "Ban users at the application, and lift such bans.",
    },
    "srv": {
        "can_view_service": "See the service.",
        "can_manage_service": "Configure the service.",
    },
    "group": {
        "can_manage_group": "See the group and change its users and conditions.",
    },
}


def _rule(description: str) -> dict[str, Any]:
    return {"value": False, "protected": False, "description": description}


def _granted(section: str, *names: str) -> dict[str, Any]:
    """Returns the named rules of a section, all of them without names, as granted."""
    return {name: {"value": True} for name in names or GENERIC_RULES[section]}


def _role(name: str, description: str, private_data: dict[str, Any], *, protected: bool = False) -> RoleRecord:
    return RoleRecord(name, meta={"private_data": private_data}, description=description, protected=protected)


def _levels(read: str, write: str) -> dict[str, Any]:
    return {"canRead": {"value": read}, "canWrite": {"value": write}}


# §2.8: the schema of a new application.
DEFAULT_LOGIN: dict[str, Any] = {
    "can": {"value": True, "protected": False, "description": "May log in."},
    "cannot": {"value": False, "protected": False, "description": "May not log in, whatever else is said."},
}
DEFAULT_SECRET_DATA: dict[str, Any] = {
    "application": {
        name: {"value": False}
        for name in ("canCreateJwt", "canModifySchema", "canRead", "canReadSchema", "canSave", "canSeeRoleList")
    },
    "meta": {
        "roles": _levels("self", "none"),
        "private": _levels("self", "none"),
        "public": _levels("all", "none"),
        "secret": _levels("none", "none"),
    },
}


def complete_schema(stored: Mapping[str, Any], changes: Mapping[str, Any] = MappingProxyType({})) -> Schema:
    """Returns a stored schema with the sections in ``changes`` in place of its own.

    The result always has the rules of ``login`` and ``secret_data`` that the service itself reads: rules missing in
    ``changes`` keep their stored values, or get their defaults.
    """
    sections = {name: changes.get(name, stored[name]) for name in SECTIONS}
    for name, defaults in (("login", DEFAULT_LOGIN), ("secret_data", DEFAULT_SECRET_DATA)):
        sections[name] = with_default_rules(sections[name], stored[name], defaults)
    return Schema(**sections)


SCHEMA = Schema(
    private_data={
        **{name: _rule(description) for name, description in ROOT_RULES.items()},
        **{
            section: {name: _rule(description) for name, description in rules.items()}
            for section, rules in GENERIC_RULES.items()
        },
    },
    secret_data=DEFAULT_SECRET_DATA,
    login=DEFAULT_LOGIN,
)

ROLES = (
    _role(ROOT_ROLE, "Every right everywhere.", {name: {"value": True} for name in ROOT_RULES}, protected=True),
    _role(
        ADMIN_ROLE,
        "Everything in a project.",
        {section: _granted(section) for section in GENERIC_RULES},
    ),
    _role(
        "manager",
        "Everything in a project, except removing it.",
        {
            **{section: _granted(section) for section in GENERIC_RULES},
            "project": _granted(
                "project",
                "can_view_project",
                "can_manage_project",
                "can_manage_applications",
                "can_manage_groups",
                "can_ban_users",
            ),
        },
    ),
    _role(
        "developer",
        "See a project, manage its applications and services.",
        {
            "project": _granted("project", "can_view_project", "can_manage_applications"),
            "app": _granted("app"),
            "srv": _granted("srv"),
        },
    ),
    _role(
        "viewer",
        "See a project, its applications and services.",
        {
            "project": _granted("project", "can_view_project"),
            "app": _granted("app", "can_view_app"),
            "srv": _granted("srv", "can_view_service"),
        },
    ),
    _role("user_manager", "Manages users.", {"can_manage_users": {"value": True}}, protected=True),
    _role("application_manager", "Manages applications.", {"can_manage_applications": {"value": True}}, protected=True),
    _role("project_manager", "Manages projects.", {"can_manage_projects": {"value": True}}, protected=True),
    _role(
        "auditor",
        "Sees users and the audit trail.",
        {"can_view_users": {"value": True}, "can_view_audit": {"value": True}},
        protected=True,
    ),
    _role("app_admin", "Everything on applications.", {"app": _granted("app")}),
    _role("srv_admin", "Everything on services.", {"srv": _granted("srv")}),
    _role("group_admin", "Everything on groups.", {"group": _granted("group")}),
)
