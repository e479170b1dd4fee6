"""Service JWTs: an application authenticates itself with a key that the service trusts for it.

An access token of a service client of the application (client_credentials) is accepted in the same places.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from sso.core.ids import MAX_APPLICATION_ID
from sso.core.jwt import InvalidToken, Signer, Verifier, kid_of, peek_claim
from sso.core.keys import UnusableKey, algorithm_of, key_id, load_private
from sso.core.net import Address
from sso.core.service_token import ServiceIdentity, claimed_application
from sso.core.signature_verification import SignatureVerificationPool
from sso.core.thread_pool import ThreadPool
from sso.core.verified_signatures import VerifiedSignatures
from sso.db.database import Database
from sso.perm.credentials.application_keys import ApplicationKeys
from sso.perm.errors import PermissionConflict
from sso.perm.stores.applications import is_active_application

TYP = "service_token"
MAX_LIFETIME_S = 3600
MAX_LENGTH = 4096  # the token is parsed before it is verified, to find the key

# Returns the identity of a valid access token of a service client, None for other tokens.
FindServiceToken = Callable[[str], Awaitable[ServiceIdentity | None]]


def claimed_application_id(token: str) -> int:
    """Returns the application that an unverified service JWT or access token names; 0 if it names none."""
    if application_id := claimed_application(token):
        return application_id
    if len(token) > MAX_LENGTH:
        return 0
    try:
        _, claim = peek_claim(token, "app_id")
    except InvalidToken:
        return 0
    return claim if type(claim) is int and 0 < claim <= MAX_APPLICATION_ID else 0


class ServiceJwts:
    def __init__(
        self,
        database: Database,
        keys: ApplicationKeys,
        verifications: SignatureVerificationPool,
        find_service_token: FindServiceToken,
        audience: str,
    ) -> None:
        self._database = database
        self._keys = keys
        self._verifications = verifications
        self._find_service_token = find_service_token
        self._audience = audience
        self._threads = ThreadPool(1)  # a signature with the largest RSA key takes 30 ms
        self._verifier = Verifier(typ=TYP, audience=audience, verified=VerifiedSignatures())

    async def verify(self, token: str, client: Address) -> ServiceIdentity:
        """Returns the application that signed the token, or the service client. Raises InvalidToken if the token is not
        valid.

        Any client can send a token, so a costly verification waits in the queue of the address ``client``.
        """
        if claimed_application(token):
            identity = await self._find_service_token(token)
            if identity is None:
                raise InvalidToken("unknown token")
            is_active = False
        else:
            application_id, is_active = await self._verify_jwt(token, client)
            identity = ServiceIdentity(application_id)
        if not is_active and not await is_active_application(self._database, identity.application_id):
            raise InvalidToken("removed application")
        return identity

    async def _verify_jwt(self, token: str, client: Address) -> tuple[int, bool]:
        """The application of a service JWT, and whether it is known that the application is not removed."""
        application_id = claimed_application_id(token)
        if not application_id:
            raise InvalidToken("bad app_id")
        # Only keys of the named application count: a key of one application is not valid for another.
        found = await self._keys.find(application_id, kid_of(token))
        if found is None:
            raise InvalidToken("unknown kid")
        key = found.key
        verify = partial(self._verifier.verify, token, lambda _: key, self._database.clock.now())
        if self._verifier.is_cached(token, key):
            claims = verify()
        else:
            claims = await self._verifications.run(client, key, verify)
        if claims["exp"] - claims["iat"] > MAX_LIFETIME_S:
            raise InvalidToken("lifetime too long")
        return application_id, found.is_active

    async def issue(self, application_id: int, private_pem: str, now: int) -> str:
        """Returns a service JWT, signed with the private key that is stored for the application.

        Raises PermissionConflict.
        """
        if not private_pem:
            raise PermissionConflict(
                "the service holds no private key of this application: store it in service_meta.private_key"
            )
        try:
            key = await self._threads.run(load_private, private_pem)
        except UnusableKey as error:
            raise PermissionConflict(f"the private key of this application cannot be used: {error}") from None
        signer = Signer(key_id(key.public_key()), key, algorithm_of(key.public_key()))
        if await self._keys.find(application_id, signer.kid) is None:
            raise PermissionConflict(
                "the public key that belongs to the stored private key is not among the application's keys"
            )
        claims: dict[str, Any] = {"typ": TYP, "app_id": application_id, "aud": self._audience}
        return await self._threads.run(signer.sign, {**claims, "iat": now, "exp": now + MAX_LIFETIME_S})
