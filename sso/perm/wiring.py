"""Builds the parts of the permission service."""

from pathlib import Path

from msgspec import Struct

from sso.accounts.second_factor.requirement import UsedFactorRequirement
from sso.accounts.user_jwt import UserJwts
from sso.change_stream.revisions import Revisions
from sso.core.encryption import Keyring
from sso.core.receiver_urls import ReceiverUrls
from sso.core.signature_verification import SignatureVerificationPool
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.perm.authorization import Authorizer
from sso.perm.authzen.endpoint import AuthzenEndpoint
from sso.perm.caller import CallerAuthenticator
from sso.perm.changes.recorder import ChangeRecorder, NoRecorder
from sso.perm.changes.window_changes import WindowChanges
from sso.perm.changes.writer import PermissionWriter
from sso.perm.credentials.application_keys import ApplicationKeys
from sso.perm.credentials.exchange_jwt import ExchangeJwt
from sso.perm.credentials.key_file_import import KeyFileImport
from sso.perm.credentials.key_files import KeyFiles
from sso.perm.credentials.service_jwt import FindServiceToken, ServiceJwts
from sso.perm.credentials.signed_address import SignedAddresses
from sso.perm.endpoints.applications import AccessKeyEndpoint, ApplicationEndpoint
from sso.perm.endpoints.audit import AuditEndpoint
from sso.perm.endpoints.checks import CheckEndpoint
from sso.perm.endpoints.groups import GroupEndpoint
from sso.perm.endpoints.projects import MembershipEndpoint, ProjectEndpoint
from sso.perm.endpoints.schemas import RoleEndpoint, SchemaEndpoint
from sso.perm.endpoints.user_data import UserDataEndpoint
from sso.perm.impersonation_rights import PermissionsOfImpersonation
from sso.perm.login_rules import LoginRules
from sso.perm.operations.access_keys import AccessKeyOperations
from sso.perm.operations.applications import ApplicationOperations
from sso.perm.operations.checks import CheckOperations
from sso.perm.operations.groups import GroupOperations
from sso.perm.operations.lookups import AccountLookup, FindUser, ProjectLookup
from sso.perm.operations.members import MemberOperations
from sso.perm.operations.projects import ProjectOperations
from sso.perm.operations.resource_search import ResourceSearch
from sso.perm.operations.reverse_questions import ReverseQuestions
from sso.perm.operations.roles import RoleOperations
from sso.perm.operations.schemas import SchemaOperations
from sso.perm.operations.user_data import UserDataOperations
from sso.perm.operations.writes import PermissionWrites
from sso.perm.question_facts import QuestionFacts
from sso.perm.read_ahead import ReadAhead
from sso.perm.request_limit import PermissionRequestLimit
from sso.perm.stores.access_keys import AccessKeys
from sso.perm.stores.cached_facts import CachedFacts
from sso.perm.stores.caller_read import CallerReads
from sso.perm.stores.facts import StoredFacts


class PermissionOperations(Struct, frozen=True):
    applications: ApplicationOperations
    roles: RoleOperations
    schemas: SchemaOperations
    user_data: UserDataOperations
    projects: ProjectOperations
    members: MemberOperations
    groups: GroupOperations
    access_keys: AccessKeyOperations
    checks: CheckOperations
    reverse: ReverseQuestions


class PermissionEndpoints(Struct, frozen=True):
    applications: ApplicationEndpoint
    roles: RoleEndpoint
    schemas: SchemaEndpoint
    user_data: UserDataEndpoint
    checks: CheckEndpoint
    authzen: AuthzenEndpoint
    projects: ProjectEndpoint
    memberships: MembershipEndpoint
    groups: GroupEndpoint
    access_keys: AccessKeyEndpoint
    audit: AuditEndpoint


class Permissions(Struct, frozen=True):
    facts: CachedFacts
    writer: PermissionWriter
    window_changes: WindowChanges
    callers: CallerAuthenticator
    read_ahead: ReadAhead
    questions: QuestionFacts
    request_limit: PermissionRequestLimit
    admin_callers: CallerAuthenticator  # for the management API, which never accepts a login from a game
    addresses: SignedAddresses
    access_keys: AccessKeys
    application_keys: ApplicationKeys
    key_file_import: KeyFileImport
    service_jwts: ServiceJwts
    login_rules: LoginRules
    impersonation_rights: PermissionsOfImpersonation
    exchange_jwt: ExchangeJwt
    operations: PermissionOperations
    endpoints: PermissionEndpoints


def build_permissions(
    database: Database,
    keyring: Keyring,
    jwts: UserJwts,
    find_user: FindUser,
    verifications: SignatureVerificationPool,
    find_service_token: FindServiceToken,
    base_url: str,
    key_folder: Path,
    node: str,
    revisions: Revisions,
    *,
    game_admin: bool,
    rate: RateLimiter,
    used_factor: UsedFactorRequirement,
    requires_second_factor: bool = False,
    appeal_url: str = "",
    recorder: ChangeRecorder | None = None,
    receiver_urls: ReceiverUrls,
) -> Permissions:
    def callers(*, accept_games: bool) -> CallerAuthenticator:
        return CallerAuthenticator(
            jwts,
            service_jwts,
            access_keys,
            database.clock,
            game_admin=accept_games,
            requires_second_factor=requires_second_factor,
            base_url=base_url,
        )

    stored_facts = StoredFacts(database)
    facts = CachedFacts(stored_facts)
    writer = PermissionWriter(database, stored_facts, recorder)
    access_keys = AccessKeys(database, keyring)
    addresses = SignedAddresses(access_keys, database.clock)
    key_files = KeyFiles(key_folder)
    application_keys = ApplicationKeys(database, key_files, node)
    service_jwts = ServiceJwts(database, application_keys, verifications, find_service_token, base_url)
    authorizer = Authorizer(facts)
    projects = ProjectLookup(database)
    accounts = AccountLookup(database, find_user)
    writes = PermissionWrites(writer, authorizer)
    operations = PermissionOperations(
        applications=ApplicationOperations(database, writes, authorizer, keyring, application_keys, receiver_urls),
        roles=RoleOperations(database, writes, authorizer, stored_facts),
        schemas=SchemaOperations(database, writes, authorizer),
        user_data=UserDataOperations(database, writes, authorizer, stored_facts),
        projects=ProjectOperations(writes, authorizer, projects, accounts),
        members=MemberOperations(database, writes, authorizer, projects, accounts),
        groups=GroupOperations(database, writes, authorizer, projects),
        access_keys=AccessKeyOperations(database, writes, authorizer, keyring),
        checks=CheckOperations(authorizer),
        reverse=ReverseQuestions(database, authorizer, stored_facts),
    )
    login_rules = LoginRules(database, keyring, facts, service_jwts, addresses, appeal_url)
    return Permissions(
        facts=facts,
        writer=writer,
        window_changes=WindowChanges(database, stored_facts, recorder or NoRecorder()),
        callers=callers(accept_games=game_admin),
        read_ahead=ReadAhead(CallerReads(database, facts), jwts, access_keys),
        questions=QuestionFacts(facts, revisions),
        request_limit=PermissionRequestLimit(database.shares, rate, authorizer),
        admin_callers=callers(accept_games=False),
        addresses=addresses,
        access_keys=access_keys,
        application_keys=application_keys,
        key_file_import=KeyFileImport(database, key_files, node),
        service_jwts=service_jwts,
        login_rules=login_rules,
        impersonation_rights=PermissionsOfImpersonation(database, facts, login_rules),
        exchange_jwt=ExchangeJwt(jwts, access_keys, login_rules, used_factor),
        operations=operations,
        endpoints=_build_endpoints(database, operations, authorizer, projects, find_user),
    )


def _build_endpoints(
    database: Database,
    operations: PermissionOperations,
    authorizer: Authorizer,
    projects: ProjectLookup,
    find_user: FindUser,
) -> PermissionEndpoints:
    return PermissionEndpoints(
        applications=ApplicationEndpoint(operations.applications),
        roles=RoleEndpoint(operations.roles),
        schemas=SchemaEndpoint(operations.schemas),
        user_data=UserDataEndpoint(database, operations.user_data, authorizer.facts),
        checks=CheckEndpoint(operations.checks),
        authzen=AuthzenEndpoint(
            operations.checks, operations.reverse, ResourceSearch(database, operations.checks), find_user
        ),
        projects=ProjectEndpoint(operations.projects, authorizer, projects),
        memberships=MembershipEndpoint(operations.members, projects),
        groups=GroupEndpoint(database, operations.groups, projects),
        access_keys=AccessKeyEndpoint(operations.access_keys),
        audit=AuditEndpoint(database, authorizer, projects),
    )
