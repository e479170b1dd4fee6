"""The permission slice, put together."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sso.accounts.user_jwt import UserJwts
from sso.core.encryption import Keyring
from sso.core.verification import VerificationPool
from sso.db.database import Database
from sso.perm.authorization import Authorizer
from sso.perm.caller import CallerAuthenticator
from sso.perm.credentials.access_keys import AccessKeys
from sso.perm.credentials.application_keys import ApplicationKeys
from sso.perm.credentials.service_jwt import ServiceJwts
from sso.perm.credentials.signed_address import SignedAddresses
from sso.perm.endpoints.access_keys import AccessKeyEndpoint
from sso.perm.endpoints.applications import ApplicationEndpoint
from sso.perm.endpoints.audit import AuditEndpoint
from sso.perm.groups import GroupEndpoint
from sso.perm.membership import MembershipEndpoint
from sso.perm.projects import ProjectEndpoint, Target
from sso.perm.roles import RoleEndpoint
from sso.perm.schemas import SchemaEndpoint
from sso.perm.stores.facts import FactsStore
from sso.perm.user_data import UserDataEndpoint


@dataclass(frozen=True)
class Permissions:
    facts: FactsStore
    desk: Authorizer
    callers: CallerAuthenticator
    addresses: SignedAddresses
    access_keys: AccessKeys
    application_keys: ApplicationKeys
    service_jwts: ServiceJwts
    applications: ApplicationEndpoint
    roles: RoleEndpoint
    schemas: SchemaEndpoint
    user_data: UserDataEndpoint
    projects: ProjectEndpoint
    memberships: MembershipEndpoint
    groups: GroupEndpoint
    key_calls: AccessKeyEndpoint
    audit: AuditEndpoint


def build_permissions(
    database: Database,
    keyring: Keyring,
    jwts: UserJwts,
    find_user: Callable[[str], Awaitable[Target | None]],
    verifications: VerificationPool,
    base_url: str,
    key_folder: Path,
    *,
    game_admin: bool,
) -> Permissions:
    facts = FactsStore(database)
    desk = Authorizer(facts)
    access_keys = AccessKeys(database, keyring)
    application_keys = ApplicationKeys(database, key_folder)
    service_jwts = ServiceJwts(database, application_keys, verifications, base_url)
    projects = ProjectEndpoint(database, desk, find_user)
    return Permissions(
        facts=facts,
        desk=desk,
        callers=CallerAuthenticator(jwts, service_jwts, access_keys, game_admin=game_admin),
        addresses=SignedAddresses(access_keys),
        access_keys=access_keys,
        application_keys=application_keys,
        service_jwts=service_jwts,
        applications=ApplicationEndpoint(database, desk, keyring, application_keys),
        roles=RoleEndpoint(database, desk),
        schemas=SchemaEndpoint(database, desk),
        user_data=UserDataEndpoint(database, desk),
        projects=projects,
        memberships=MembershipEndpoint(database, desk, projects),
        groups=GroupEndpoint(database, desk, projects),
        key_calls=AccessKeyEndpoint(database, desk, access_keys),
        audit=AuditEndpoint(database, desk, projects),
    )
