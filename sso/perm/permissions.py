"""The permission slice, put together."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sso.accounts.user_jwt import UserJwts
from sso.core.sealed import Keyring
from sso.core.verification import VerificationPool
from sso.db.bridge import Database
from sso.perm.access_keys import AccessKeys
from sso.perm.app_keys import ApplicationKeys
from sso.perm.applications import Applications
from sso.perm.audit_calls import AuditCalls
from sso.perm.callers import Callers
from sso.perm.desk import Desk
from sso.perm.facts_store import FactsStore
from sso.perm.groups import Groups
from sso.perm.key_calls import KeyCalls
from sso.perm.membership import Memberships
from sso.perm.projects import Projects, Target
from sso.perm.roles import Roles
from sso.perm.schemas import Schemas
from sso.perm.service_jwt import ServiceJwts
from sso.perm.signed_address import SignedAddresses
from sso.perm.user_data import UserData


@dataclass(frozen=True)
class Permissions:
    facts: FactsStore
    desk: Desk
    callers: Callers
    addresses: SignedAddresses
    access_keys: AccessKeys
    application_keys: ApplicationKeys
    service_jwts: ServiceJwts
    applications: Applications
    roles: Roles
    schemas: Schemas
    user_data: UserData
    projects: Projects
    memberships: Memberships
    groups: Groups
    key_calls: KeyCalls
    audit: AuditCalls


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
    desk = Desk(facts)
    access_keys = AccessKeys(database, keyring)
    application_keys = ApplicationKeys(database, key_folder)
    service_jwts = ServiceJwts(database, application_keys, verifications, base_url)
    projects = Projects(database, desk, find_user)
    return Permissions(
        facts=facts,
        desk=desk,
        callers=Callers(jwts, service_jwts, access_keys, game_admin=game_admin),
        addresses=SignedAddresses(access_keys),
        access_keys=access_keys,
        application_keys=application_keys,
        service_jwts=service_jwts,
        applications=Applications(database, desk, keyring, application_keys),
        roles=Roles(database, desk),
        schemas=Schemas(database, desk),
        user_data=UserData(database, desk),
        projects=projects,
        memberships=Memberships(database, desk, projects),
        groups=Groups(database, desk, projects),
        key_calls=KeyCalls(database, desk, access_keys),
        audit=AuditCalls(database, desk, projects),
    )
