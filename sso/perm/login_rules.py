"""The rules of applications for logins: which users may log in, with which permissions, and which servers may ask."""

from sso.accounts.errors import Banned, LoginNotAllowed
from sso.accounts.model import User
from sso.core.ban import ban_in_force
from sso.core.encryption import Keyring
from sso.core.field_errors import FieldError
from sso.core.jwt import InvalidToken
from sso.core.net import Address
from sso.db.connection_share import reads_for_sign_in
from sso.db.database import Database
from sso.db.transaction import run_pure
from sso.perm.credentials.service_jwt import ServiceJwts
from sso.perm.credentials.signed_address import SignedAddresses
from sso.perm.engine.login_permission import login_allowed
from sso.perm.engine.render import as_list_short
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rights import Rights
from sso.perm.stores.applications import read_application_name
from sso.perm.stores.builtin_roles import ROOT_RULES
from sso.perm.stores.email_secret import email_secret_matches
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.user_data import has_own_secret_data
from sso.telemetry.counters import PERMISSION_CHECKS


class LoginRules:
    """Implements `sso.accounts.ports.ApplicationDirectory`."""

    def __init__(
        self,
        database: Database,
        keyring: Keyring,
        facts: FactsReader,
        service_jwts: ServiceJwts,
        addresses: SignedAddresses,
        appeal_url: str = "",
    ) -> None:
        self._appeal_url = appeal_url
        self._database = database
        self._keyring = keyring
        self._facts = facts
        self._service_jwts = service_jwts
        self._addresses = addresses

    async def service_applications(
        self, service_jwt: str, application_ids: tuple[int, ...], client: Address
    ) -> tuple[int, ...]:
        try:
            service_id = (await self._service_jwts.verify(service_jwt, client)).application_id
        except InvalidToken:
            raise FieldError(("service_jwt",), "invalid token") from None
        if application_ids and service_id not in application_ids:
            raise FieldError(("service_jwt",), "is of another application")
        return application_ids or (service_id,)

    async def require_existing(self, field: str, application_id: int) -> None:
        loaded = await self._facts.load("", application_id, None)
        if loaded is None or loaded.is_removed:
            raise FieldError((field,), "there is no such application")

    async def client_address(
        self, peer: Address, claimed: str | None, signature: str | None, application_ids: tuple[int, ...]
    ) -> Address:
        return await self._addresses.resolve(peer, claimed, signature, application_ids)

    async def permissions(self, user: User, address: Address, application_ids: tuple[int, ...]) -> dict[str, list[str]]:
        now = int(self._database.clock.now())
        if user.bans and (ban := ban_in_force(user.bans, now)):
            raise Banned(ban, self._appeal_url)
        permissions: dict[str, list[str]] = {}
        for application_id in application_ids:
            with reads_for_sign_in():
                loaded = await self._facts.load(user.user_id, application_id, address)
            if loaded is None or loaded.is_removed:
                raise LoginNotAllowed
            PERMISSION_CHECKS.add("login")
            facts = loaded.facts
            if ban := facts.ban(application_id, now):
                raise Banned(ban, self._appeal_url)
            restricted_domains = loaded.settings.get("restricted_domains") or ()
            if not login_allowed(loaded.application.schema, facts.own, facts.user.domain, restricted_domains, now):
                raise LoginNotAllowed
            if loaded.is_large:
                await loaded.prepare(self._database.run_in_thread, now)
            permissions[str(application_id)] = await run_pure(
                self._database, loaded.is_large, as_list_short, loaded.effective(now)
            )
        return permissions

    async def is_email_secret(self, application_id: int, secret: str) -> bool:
        application_id = application_id or CENTRAL_APPLICATION_ID
        return await email_secret_matches(self._database, self._keyring, application_id, secret)

    async def is_administrator(self, user: User, address: Address | None) -> bool:
        """Administrators have the role root, a root rule, access to a project, or own secret data at an application."""
        central = await self._facts.load(user.user_id, CENTRAL_APPLICATION_ID, address)
        assert central is not None
        rights = Rights(central.effective(int(self._database.clock.now())))
        if rights.is_root or rights.central.projects or any(map(rights.has_root_rule, ROOT_RULES)):
            return True
        return await has_own_secret_data(self._database, user.user_id)

    async def title(self, application_ids: tuple[int, ...]) -> str:
        if not application_ids:
            return ""
        return await read_application_name(self._database, application_ids[-1])
