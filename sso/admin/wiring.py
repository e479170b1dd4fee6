"""Builds the management API: its resources, and the table of its routes."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

from sso.accounts.registration.wiring import UserRegistration
from sso.accounts.second_factor.changes import SecondFactorChanges
from sso.accounts.sessions import SessionStore
from sso.accounts.signed_in_games import SignedInGames
from sso.accounts.users import UserStore
from sso.admin.assertions import assertion_routes
from sso.admin.audit_trail import AuditQuery, AuditTrail
from sso.admin.caller import AdminAuthenticator, AdminCaller
from sso.admin.change_wiring import ChangeParts, stream_routes
from sso.admin.export_audit import ExportAudit
from sso.admin.invitations import InvitationResource, invitation_routes
from sso.admin.permission_wiring import permission_routes
from sso.admin.personal_data import PersonalDataResource, personal_data_routes
from sso.admin.protected_users import ProtectedUsers
from sso.admin.request import AdminRoute, ListQuery, SearchQuery, WriteQuery
from sso.admin.rights import AdminRight
from sso.admin.service_wiring import ServiceParts, service_routes
from sso.admin.system import SystemResource, system_routes
from sso.admin.user_assignments import UserAssignments, user_assignment_routes
from sso.admin.user_details import UserDetails
from sso.admin.users import FIXED_FIELDS, NEW_USER, UserCreation, UserPatch, UserResource
from sso.core.encryption import Keyring
from sso.core.passwords import Hasher
from sso.db.connection_share import ConnectionShares
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.perm.authorization import Authorizer
from sso.perm.credentials.service_jwt import FindServiceToken
from sso.perm.visibility import Visibility
from sso.perm.wiring import Permissions
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.erasure import AccountErasure

EXPORTS_DIVISOR = 60  # how many times fewer exports than other requests an administrator may make


@dataclass(frozen=True)
class AccountServices:
    """The services by which the management API changes accounts."""

    users: UserStore
    sessions: SessionStore
    games: SignedInGames
    factor_changes: SecondFactorChanges
    deletion: AccountDeletion
    erasure: AccountErasure
    hasher: Hasher
    registration: UserRegistration
    sends_mail: bool


@dataclass(frozen=True)
class ManagementApi:
    authenticator: AdminAuthenticator
    shares: ConnectionShares
    rate: RateLimiter
    export_rate: RateLimiter  # of the console
    visibility: Visibility
    protected: ProtectedUsers
    exports: ExportAudit  # of the console
    routes: tuple[AdminRoute, ...]

    def limit(self, caller: AdminCaller) -> AbstractContextManager[None]:
        """Limits the connections of the database that the caller's request uses within the block."""
        return self.shares.limit_management(caller.permissions.subject, is_root=caller.is_root)

    async def authorize(self, caller: AdminCaller, route: AdminRoute) -> None:
        """Raises Forbidden if the caller may not use the route. The handler may check more."""
        if route.right in caller.rights or route.other_right in caller.rights:
            return
        may_have_permissions = route.by_permissions and caller.application_id is None
        if not may_have_permissions or not await self.visibility.has_permissions(caller.permissions):
            caller.require(route.right)


def build_management(
    database: Database,
    keyring: Keyring,
    accounts: AccountServices,
    permissions: Permissions,
    find_service_token: FindServiceToken,
    changes: ChangeParts,
    rate: RateLimiter,
    requests_per_minute: int,
    service: ServiceParts,
) -> ManagementApi:
    facts, writer = permissions.facts, permissions.writer
    protected = ProtectedUsers(database)
    users = UserResource(writer, database, accounts.users, accounts.hasher, keyring, protected)
    details = UserDetails(
        database, users, accounts.users, accounts.sessions, accounts.games, accounts.factor_changes, facts
    )
    authorizer = Authorizer(facts)
    visibility = Visibility(database, authorizer)
    return ManagementApi(
        AdminAuthenticator(permissions.admin_callers, authorizer, find_service_token, database.clock),
        database.shares,
        rate,
        RateLimiter(database, "export", -(-requests_per_minute // EXPORTS_DIVISOR)),
        visibility,
        protected,
        ExportAudit(database),
        (
            *_user_routes(users, details),
            *personal_data_routes(PersonalDataResource(database, users, accounts.deletion, accounts.erasure)),
            *_audit_routes(AuditTrail(database)),
            *invitation_routes(_invitations(database, accounts, users)),
            *service_routes(database, keyring, service, accounts.hasher, writer),
            *system_routes(SystemResource(database)),
            *permission_routes(database, keyring, permissions, details, accounts.users, visibility),
            *user_assignment_routes(UserAssignments(database, users)),
            *assertion_routes(database, writer, facts.stored),
            *stream_routes(database, keyring, changes),
        ),
    )


def _invitations(database: Database, accounts: AccountServices, users: UserResource) -> InvitationResource:
    registration = accounts.registration
    return InvitationResource(
        database, registration.invitations, users, registration.mode, sends_mail=accounts.sends_mail
    )


def _user_routes(users: UserResource, details: UserDetails) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_USERS, AdminRight.MANAGE_USERS
    user = "/users/<user_id>"
    return (
        AdminRoute("GET", "/users", view, users.list, SearchQuery),
        AdminRoute("POST", "/users", manage, users.create, body=UserCreation, example=NEW_USER),
        AdminRoute("GET", user, view, users.get),
        AdminRoute(
            "PATCH",
            user,
            manage,
            users.change,
            WriteQuery,
            UserPatch,
            example={"disabled": True},
            fixed_fields=FIXED_FIELDS,
        ),
        AdminRoute("GET", f"{user}/sessions", view, details.sessions, ListQuery),
        AdminRoute("DELETE", f"{user}/sessions", manage, details.end_sessions),
        AdminRoute("DELETE", f"{user}/sessions/<session_id>", manage, details.end_session),
        AdminRoute("GET", f"{user}/games", view, details.games, ListQuery),
        AdminRoute("DELETE", f"{user}/games/<sign_in_id>", manage, details.end_game),
        AdminRoute("GET", f"{user}/factors", view, details.factors, ListQuery),
        AdminRoute("DELETE", f"{user}/factors", manage, details.reset_factors),
        AdminRoute("GET", f"{user}/factors/block", view, details.block, summary="Read the blocked factors of a user"),
        AdminRoute(
            "DELETE", f"{user}/factors/block", manage, details.unblock_factors, summary="Unblock the factors of a user"
        ),
    )


def _audit_routes(trail: AuditTrail) -> tuple[AdminRoute, ...]:
    view = AdminRight.VIEW_AUDIT
    return (
        AdminRoute("GET", "/audit", view, trail.list, AuditQuery),
        AdminRoute("GET", "/audit/<entry_id>", view, trail.get),
    )
