"""Authenticates callers of the management API: users with a user JWT and its factor, and service clients.

An operator binds a service client to the central application. Its access token (client_credentials) has every right, as
the service JWT of that application has. A service client of another application reads the changes of that application.
"""

from msgspec import Struct

from sso.admin.rights import ALL_RIGHTS, AdminRight, granted_rights
from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden, Unauthorized
from sso.core.net import Address
from sso.core.service_token import claimed_application
from sso.db.clock import DatabaseClock
from sso.perm.accepted_credentials import EndpointRule, Subject
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller, CallerAuthenticator, PresentedCredentials
from sso.perm.credentials.service_jwt import FindServiceToken
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID

# Handlers of routes with these rights must not return data of other applications than ``AdminCaller.application_id``.
RIGHTS_AT_OWN_APPLICATION = frozenset({AdminRight.VIEW_CHANGES})
_USER_JWT = EndpointRule(Subject.PROJECT)  # a user JWT is accepted with its factor only


class AdminCaller(Struct, frozen=True):
    actor: AuditActor
    rights: frozenset[AdminRight]
    root_rules: frozenset[str]  # rules in private_data of the central application, without that prefix
    is_root: bool
    permissions: Caller  # the same caller, for the permission endpoints
    application_id: int | None = None  # that a service client of another application is restricted to

    @property
    def sees_users(self) -> bool:
        return AdminRight.VIEW_USERS in self.rights

    def require(self, right: AdminRight) -> None:
        if right not in self.rights:
            raise Forbidden(f"{right} is required")


class AdminAuthenticator:
    def __init__(
        self,
        callers: CallerAuthenticator,
        authorizer: Authorizer,
        find_service_token: FindServiceToken,
        clock: DatabaseClock,
    ) -> None:
        self._clock = clock
        self._callers = callers
        self._authorizer = authorizer
        self._find_service_token = find_service_token

    async def authenticate(self, credentials: PresentedCredentials) -> AdminCaller:
        """Returns the caller. Raises Unauthorized or Forbidden."""
        if claimed_application(credentials.bearer):
            return await self._service_client(credentials)
        caller = await self._callers.authenticate(credentials, _USER_JWT, {})
        if caller.second_factor_missing:
            raise self._callers.needs_second_factor()
        return await self._with_rights(caller)

    async def browser_caller(self, user_id: str, address: Address) -> AdminCaller:
        """Returns the caller for a user whose browser session is valid. The browser takes the place of the factor."""
        caller = Caller(user_id, address, now=int(self._clock.now()), has_factor=True)
        return await self._with_rights(caller)

    async def _with_rights(self, caller: Caller) -> AdminCaller:
        caller = caller._replace(in_management=True)
        granted = (await self._authorizer.caller_rights(caller)).granted
        rights = ALL_RIGHTS if granted.is_root else granted_rights(granted.root_rules)
        return AdminCaller(caller.actor, rights, granted.root_rules, granted.is_root, caller)

    async def _service_client(self, credentials: PresentedCredentials) -> AdminCaller:
        identity = await self._find_service_token(credentials.bearer)
        if identity is None:
            raise Unauthorized
        application_id = identity.application_id
        is_central = application_id == CENTRAL_APPLICATION_ID
        caller = Caller(
            "",
            credentials.address,
            application_id,
            now=int(self._clock.now()),
            has_factor=is_central,
            in_management=True,
            is_operator=is_central,
            client_id=identity.client_id,
        )
        if is_central:
            return AdminCaller(caller.actor, ALL_RIGHTS, frozenset(), is_root=True, permissions=caller)
        return AdminCaller(
            caller.actor,
            RIGHTS_AT_OWN_APPLICATION,
            frozenset(),
            is_root=False,
            permissions=caller,
            application_id=application_id,
        )
