"""Builds the management API: its resources, and the table of its routes."""

from contextlib import AbstractContextManager

from msgspec import Struct

from sso.accounts.bans.operations import BanOperations
from sso.accounts.impersonation.operations import Impersonations
from sso.accounts.registration.wiring import UserRegistration
from sso.accounts.signed_in_game_store import EXPIRED_JWT_S
from sso.accounts.support_operations import SupportOperations
from sso.accounts.user_store import UserStore
from sso.admin.access_keys import AccessKeyResource
from sso.admin.application_keys import ApplicationKeyResource, application_key_routes
from sso.admin.applications import ApplicationResource
from sso.admin.assertions import assertion_routes
from sso.admin.assignments import AssignmentResource, assignment_routes
from sso.admin.audit_trail import AuditTrail, ExportAudit, audit_routes
from sso.admin.bans import BanResource, ban_routes
from sso.admin.branding import BrandResource, brand_routes
from sso.admin.caller import AdminAuthenticator, AdminCaller
from sso.admin.changes import ChangeStream, change_routes
from sso.admin.clients import ClientResource
from sso.admin.conditions import ConditionResource, condition_routes
from sso.admin.data_requests import DataRequestResource, data_request_routes
from sso.admin.game_sessions import GameSessionResource, ViolationResource, game_session_routes
from sso.admin.groups import GroupResource
from sso.admin.identity_providers import ProviderResource
from sso.admin.impersonation import ImpersonationResource
from sso.admin.invitations import InvitationResource
from sso.admin.members import MemberResource
from sso.admin.projects import ProjectResource
from sso.admin.protected_users import ProtectedUsers
from sso.admin.record_name_store import RecordNameStore
from sso.admin.recorded_requests import RecordedRequestResource, recorded_request_routes
from sso.admin.registration_tokens import RegistrationTokenResource
from sso.admin.replicas import ReplicaResource, replica_routes
from sso.admin.request import AdminRoute
from sso.admin.reverse_questions import ReverseQuestionResource, reverse_question_routes
from sso.admin.roles import RoleResource
from sso.admin.schemas import SchemaResource
from sso.admin.signal_streams import SignalStreamResource, signal_stream_routes
from sso.admin.signing_keys import SigningKeyResource, signing_key_routes
from sso.admin.state import StateResource, state_routes
from sso.admin.system import SystemResource, system_routes
from sso.admin.user_details import UserDetails
from sso.admin.user_import import UserImportResource
from sso.admin.user_links import UserLinkResource
from sso.admin.users import UserResource
from sso.admin.webhooks import WebhookResource
from sso.branding.record import fixed_fields
from sso.bus.bus import Bus
from sso.change_stream.reader import ChangeReader
from sso.change_stream.revisions import Revisions
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.core.errors import Unauthorized
from sso.core.passwords import Hasher
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.keys.rotation import KeyRotation
from sso.keys.store import KeyStore
from sso.perm.authorization import Authorizer
from sso.perm.credentials.service_jwt import FindServiceToken
from sso.perm.operations.bans import BanRights
from sso.perm.operations.replica_feed import ReplicaFeed
from sso.perm.stores.applications import is_active_application
from sso.perm.visibility import Visibility
from sso.perm.wiring import Permissions
from sso.personal_data.deletion import AccountDeletion
from sso.personal_data.erasure import AccountErasure
from sso.players.wiring import Players
from sso.state.apply import RecordOperations
from sso.state.user_import import UserImport
from sso.upstream.wiring import Upstream
from sso.webhooks.wiring import Webhooks

EXPORTS_DIVISOR = 60  # how many times fewer exports than other requests an administrator may make


class ManagementServices(Struct, frozen=True):
    """The services by which the management API reads and changes records, and manages the service itself."""

    settings: Settings
    database: Database
    keyring: Keyring
    bus: Bus
    operations: RecordOperations
    support: SupportOperations
    users: UserStore
    hasher: Hasher
    deletion: AccountDeletion
    erasure: AccountErasure
    registration: UserRegistration
    permissions: Permissions
    find_service_token: FindServiceToken
    upstream: Upstream
    key_store: KeyStore
    key_rotation: KeyRotation
    change_reader: ChangeReader
    webhooks: Webhooks
    rate: RateLimiter
    players: Players
    bans: BanOperations
    impersonations: Impersonations


class ManagementApi(Struct, frozen=True):
    database: Database
    authenticator: AdminAuthenticator
    rate: RateLimiter
    export_rate: RateLimiter  # for the console
    visibility: Visibility
    protected: ProtectedUsers
    exports: ExportAudit  # for the console
    names: RecordNameStore  # for the console
    revisions: Revisions
    routes: tuple[AdminRoute, ...]

    def limit(self, caller: AdminCaller) -> AbstractContextManager[None]:
        """Limits the connections of the database that the caller's request uses within the block."""
        return self.database.shares.limit_management(caller.permissions.subject, is_root=caller.is_root)

    async def authorize(self, caller: AdminCaller, route: AdminRoute) -> None:
        """Raises Forbidden if the caller may not use the route, and Unauthorized if the application of a service client
        was removed. The handler may check more."""
        own = caller.application_id
        if (
            own is not None
            and not route.serves_removed_applications
            and not await is_active_application(self.database, own)
        ):
            raise Unauthorized
        if route.right in caller.rights or route.other_right in caller.rights:
            return
        may_have_permissions = route.by_permissions and caller.application_id is None
        if not may_have_permissions or not await self.visibility.has_permissions(caller.permissions):
            caller.require(route.right)


def build_management(services: ManagementServices) -> ManagementApi:
    database, permissions = services.database, services.permissions
    authorizer, protected = Authorizer(permissions.facts), ProtectedUsers(database)
    visibility = Visibility(database, authorizer)
    callers = AdminAuthenticator(permissions.admin_callers, authorizer, services.find_service_token, database.clock)
    export_rate = RateLimiter(database, "export", -(-services.settings.rate_admin // EXPORTS_DIVISOR))
    routes = _routes(services, visibility, protected)
    exports = ExportAudit(database)
    names = RecordNameStore(database)
    revisions = permissions.questions.revisions
    return ManagementApi(
        database, callers, services.rate, export_rate, visibility, protected, exports, names, revisions, routes
    )


def _routes(s: ManagementServices, visibility: Visibility, protected: ProtectedUsers) -> tuple[AdminRoute, ...]:
    writer, facts = s.permissions.writer, s.permissions.facts
    users = UserResource(s.database, writer, s.users, s.hasher, s.operations.users, s.deletion, s.erasure, protected)
    details = UserDetails(users, s.support, facts)
    invitations = InvitationResource(users, s.registration, sends_mail=s.settings.smtp_url is not None)
    return (
        *users.routes(),
        *UserImportResource(UserImport(s.hasher, s.operations, s.upstream.links, writer)).routes(),
        *details.routes(),
        *UserLinkResource(users, s.players.merges, s.players.links, protected).routes(),
        *ImpersonationResource(users, s.impersonations).routes(),
        *ban_routes(BanResource(users, s.bans, writer, BanRights(s.database, Authorizer(facts)), protected)),
        *data_request_routes(DataRequestResource(s.database)),
        *audit_routes(AuditTrail(s.database)),
        *InvitationResource.kind.routes(invitations),
        *_service_routes(s),
        *_permission_routes(s, users, details, visibility),
        *assertion_routes(s.database, writer, facts.stored),
        *change_routes(ChangeStream(s.change_reader)),
        *replica_routes(ReplicaResource(ReplicaFeed(s.database), s.change_reader, s.users, s.database.clock)),
        *WebhookResource(s.database, s.keyring, s.webhooks).routes(),
    )


def _service_routes(s: ManagementServices) -> tuple[AdminRoute, ...]:
    settings, operations = s.settings, s.operations
    providers = ProviderResource(s.database, s.upstream, operations.providers, settings.base_url)
    keys = SigningKeyResource(s.key_store, s.key_rotation, settings)
    sessions = GameSessionResource(s.database, s.bus, settings.token_max_s + EXPIRED_JWT_S)
    state = StateResource(s.database, s.hasher, operations, s.permissions.writer)
    return (
        *ClientResource(s.database, operations.clients).routes(),
        *RegistrationTokenResource.kind.routes(RegistrationTokenResource(s.database)),
        *signal_stream_routes(SignalStreamResource(s.database)),
        *recorded_request_routes(RecordedRequestResource(s.database)),
        *providers.routes(),
        *signing_key_routes(keys),
        *game_session_routes(sessions, ViolationResource(s.database)),
        *state_routes(state),
        *system_routes(SystemResource(s.database)),
        *brand_routes(BrandResource(s.database, fixed_fields(settings))),
    )


def _permission_routes(
    s: ManagementServices, users: UserResource, details: UserDetails, visibility: Visibility
) -> tuple[AdminRoute, ...]:
    database, operations = s.database, s.permissions.operations
    keys = ApplicationKeyResource(database, s.keyring, s.permissions.application_keys, s.permissions.service_jwts)
    return (
        *ApplicationResource(database, operations.applications, visibility).routes(),
        *application_key_routes(keys),
        *SchemaResource(database, operations.schemas, visibility).routes(),
        *RoleResource(database, operations.roles, visibility).routes(),
        *AccessKeyResource.kind.routes(AccessKeyResource(database, operations.access_keys, visibility)),
        *ProjectResource(database, operations.projects, visibility).routes(),
        *MemberResource(database, operations.members, visibility).routes(),
        *GroupResource(database, operations.groups, visibility).routes(),
        *condition_routes(ConditionResource(database, s.users, visibility)),
        *assignment_routes(AssignmentResource(users, operations.user_data, details, visibility)),
        *reverse_question_routes(ReverseQuestionResource(operations.reverse, visibility)),
    )
