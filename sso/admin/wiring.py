"""Builds the management API: its resources, and the table of its routes."""

from sso.admin.audit_trail import AuditQuery, AuditTrail
from sso.admin.caller import AdminAuthenticator
from sso.admin.protected_users import ProtectedUsers
from sso.admin.request import AdminRoute, SearchQuery
from sso.admin.rights import AdminRight
from sso.admin.user_details import PermissionsQuery, UserDetails
from sso.admin.users import UserChanges, UserResource
from sso.perm.authorization import Authorizer
from sso.services import Services
from sso.state.sections.users import UserPart


def build_authenticator(s: Services) -> AdminAuthenticator:
    return AdminAuthenticator(s.permissions.callers, Authorizer(s.permissions.facts), s.service_tokens.application_of)


def admin_table(s: Services) -> tuple[AdminRoute, ...]:
    protected = ProtectedUsers(s.permissions.facts, s.database.clock)
    users = UserResource(s.database, s.users, s.hasher, s.keyring, s.deletion, protected)
    details = UserDetails(
        s.database, users, s.users, s.sessions, s.signed_in_games, s.second_factor_changes, s.permissions.facts
    )
    return (*_user_routes(users, details), *_audit_routes(AuditTrail(s.database)))


def _user_routes(users: UserResource, details: UserDetails) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_USERS, AdminRight.MANAGE_USERS
    one = "/users/<user_id>"
    return (
        AdminRoute("GET", "/users", view, users.list, SearchQuery),
        AdminRoute("POST", "/users", manage, users.create, body=UserPart),
        AdminRoute("GET", one, view, users.get),
        AdminRoute("PATCH", one, manage, users.change, body=UserChanges),
        AdminRoute("DELETE", one, manage, users.delete),
        AdminRoute("GET", f"{one}/sessions", view, details.sessions),
        AdminRoute("DELETE", f"{one}/sessions", manage, details.end_sessions),
        AdminRoute("DELETE", f"{one}/sessions/<session_id>", manage, details.end_session),
        AdminRoute("GET", f"{one}/games", view, details.games),
        AdminRoute("DELETE", f"{one}/games/<sign_in_id>", manage, details.end_game),
        AdminRoute("GET", f"{one}/factors", view, details.factors),
        AdminRoute("DELETE", f"{one}/factors", manage, details.reset_factors),
        AdminRoute("GET", f"{one}/permissions", view, details.permissions, PermissionsQuery),
    )


def _audit_routes(trail: AuditTrail) -> tuple[AdminRoute, ...]:
    return (AdminRoute("GET", "/audit", AdminRight.VIEW_AUDIT, trail.list, AuditQuery),)
