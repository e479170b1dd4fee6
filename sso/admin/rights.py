"""The rights of the management API. Each is a rule in ``private_data`` of the central application.

The role ``root`` has all of them. A right to manage something includes the right to view it, and so does the right to
open the accounts of users.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum


class AdminRight(StrEnum):
    VIEW_USERS = "can_view_users"
    MANAGE_USERS = "can_manage_users"
    BAN_USERS = "can_ban_users"
    IMPERSONATE_USERS = "can_impersonate_users"
    VIEW_AUDIT = "can_view_audit"
    VIEW_APPLICATIONS = "can_view_applications"
    MANAGE_APPLICATIONS = "can_manage_applications"
    VIEW_PROJECTS = "can_view_projects"
    MANAGE_PROJECTS = "can_manage_projects"
    VIEW_CLIENTS = "can_view_clients"
    MANAGE_CLIENTS = "can_manage_clients"
    VIEW_KEYS = "can_view_keys"
    MANAGE_KEYS = "can_manage_keys"
    VIEW_GAME_SESSIONS = "can_view_game_sessions"
    MANAGE_GAME_SESSIONS = "can_manage_game_sessions"
    VIEW_STATE = "can_view_state"
    MANAGE_STATE = "can_manage_state"
    VIEW_CHANGES = "can_view_changes"
    VIEW_SYSTEM = "can_view_system"
    MANAGE_WEBHOOKS = "can_manage_webhooks"


_INCLUDED_IN: Mapping[AdminRight, tuple[AdminRight, ...]] = {
    AdminRight.VIEW_USERS: (AdminRight.MANAGE_USERS, AdminRight.IMPERSONATE_USERS),
    AdminRight.VIEW_APPLICATIONS: (AdminRight.MANAGE_APPLICATIONS,),
    AdminRight.VIEW_PROJECTS: (AdminRight.MANAGE_PROJECTS,),
    AdminRight.VIEW_CLIENTS: (AdminRight.MANAGE_CLIENTS,),
    AdminRight.VIEW_KEYS: (AdminRight.MANAGE_KEYS,),
    AdminRight.VIEW_GAME_SESSIONS: (AdminRight.MANAGE_GAME_SESSIONS,),
    AdminRight.VIEW_STATE: (AdminRight.MANAGE_STATE,),
    AdminRight.VIEW_CHANGES: (AdminRight.MANAGE_WEBHOOKS,),  # a webhook receives them
}
ALL_RIGHTS = frozenset(AdminRight)


def granted_rights(root_rules: Collection[str]) -> frozenset[AdminRight]:
    """Returns the rights of a user who has these rules in ``private_data`` of the central application."""
    return with_included({right for right in AdminRight if right in root_rules})


def with_included(rights: set[AdminRight]) -> frozenset[AdminRight]:
    return frozenset(
        right for right in AdminRight if right in rights or not rights.isdisjoint(_INCLUDED_IN.get(right, ()))
    )
