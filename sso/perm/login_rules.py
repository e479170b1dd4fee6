"""What a login must know of applications: may the user log in there, with which permissions, and who may ask."""

import time

from sso.accounts.errors import LoginNotAllowed
from sso.accounts.model import User
from sso.core.encryption import Keyring
from sso.core.errors import ApiError
from sso.core.jwt import InvalidToken
from sso.core.net import Address
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.credentials import email_secret
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.login_permission import login_allowed
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.operations import ROOT_RULES
from sso.perm.engine.render import as_list_short
from sso.perm.engine.rights import Rights
from sso.perm.wiring import Permissions

_NAME = Statement("SELECT name FROM applications WHERE application_id = :application_id")
_HAS_SECRET_DATA = Statement(
    "SELECT EXISTS (SELECT 1 FROM user_records WHERE user_id = :user_id AND secret_data <> '{}')"
)


class LoginRules:
    def __init__(self, permissions: Permissions, database: Database, keyring: Keyring) -> None:
        self._permissions = permissions
        self._database = database
        self._keyring = keyring

    async def service_applications(self, service_jwt: str, named: tuple[int, ...], client: Address) -> tuple[int, ...]:
        try:
            service_id = await self._permissions.service_jwts.verify(service_jwt, client)
        except InvalidToken:
            raise ApiError("service_jwt: invalid token") from None
        if named and service_id not in named:
            raise ApiError("service_jwt: is of another application")
        return named or (service_id,)

    async def require_existing(self, named: tuple[int, ...]) -> None:
        for application_id in named:
            found = await self._permissions.facts.load("", application_id, None)
            if found is None or found.gone:
                raise ApiError("app_id: there is no such application")

    async def client_address(
        self, real: Address, said: str | None, signature: str | None, named: tuple[int, ...]
    ) -> Address:
        return await self._permissions.addresses.resolve(real, said, signature, named)

    async def permissions(self, user: User, address: Address, named: tuple[int, ...]) -> dict[str, list[str]]:
        now = int(time.time())
        found: dict[str, list[str]] = {}
        for application_id in named:
            loaded = await self._permissions.facts.load(user.user_id, application_id, address)
            if loaded is None or loaded.gone:
                raise LoginNotAllowed
            facts, application = loaded.facts, loaded.application
            restricted = loaded.settings.get("restricted_domains") or ()
            if not login_allowed(application.schema, facts.own, facts.user.domain, restricted, now):
                raise LoginNotAllowed
            found[str(application_id)] = as_list_short(compute_permissions(application, facts, now))
        return found

    async def is_email_secret(self, application_id: int, secret: str) -> bool:
        return await email_secret.matches(
            self._database, self._keyring, application_id or CENTRAL_APPLICATION_ID, secret
        )

    async def is_administrator(self, user: User, address: Address) -> bool:
        """By the role root, a root rule, access to a project, or secret data of their own at an application."""
        central = await self._permissions.facts.load(user.user_id, CENTRAL_APPLICATION_ID, address)
        assert central is not None
        rights = Rights(compute_permissions(central.application, central.facts, int(time.time())))
        if rights.is_root or rights.central.projects or any(map(rights.has_root_rule, ROOT_RULES)):
            return True
        return bool(await self._database.value(_HAS_SECRET_DATA, user_id=user.user_id))

    async def title(self, named: tuple[int, ...]) -> str:
        return str(await self._database.value(_NAME, application_id=named[-1]) or "") if named else ""
