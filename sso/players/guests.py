"""Signs players in with a key of their device. The first request with a key creates its user, a guest."""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol

from msgspec import Struct

from sso.accounts.authentication_context import by_device_key
from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.errors import Banned, InvalidCredentials
from sso.accounts.model import LoginOptions, SignedIn
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.second_factor.requirement import UsedFactorRequirement
from sso.accounts.session_tokens import SessionTokens
from sso.core.device_key import DeviceKey
from sso.core.errors import ApiError, RetryLater
from sso.core.net import SITE_FACTOR, Address, client_networks
from sso.db.clock import DatabaseClock
from sso.db.database import Database
from sso.db.rate_limit import WindowLimiter
from sso.gsid.client_proof import ProofFailure
from sso.players.device_key_store import MAX_CLOCK_DIFFERENCE_S, DeviceKeyStore, KeySignIn
from sso.telemetry.counters import LOGINS

HOUR_S = 3600
METHOD = "guest"  # in the metrics

WRONG_SIGNATURE = ProofFailure("wrong signature", "Request-Sign: a signature of public_key over the body")
REPEATED_NONCE = ProofFailure("repeated nonce", "a nonce that the key has not used before")


class TooManyGuests(RetryLater):
    status = 429
    message = "too many new guests, try again later"


class GuestRequest(Struct, frozen=True):
    key: DeviceKey
    ts: int
    nonce: str
    signature: str
    body: bytes  # which the signature covers


class Refusals(Protocol):
    """Security violations, of which the client learns the id of a record."""

    async def refuse(self, gsid: str, failure: ProofFailure, address: Address) -> ApiError: ...


class NewGuestLimit:
    """Limits new guests per hour and client, as `RateLimiter` does it per minute."""

    def __init__(self, database: Database, per_hour: int) -> None:
        self._database = database
        self._per_hour = per_hour
        self._network = WindowLimiter("guest", per_hour, HOUR_S)
        self._site = WindowLimiter("guest site", per_hour * SITE_FACTOR, HOUR_S)

    async def count(self, address: Address) -> None:
        """Raises TooManyGuests beyond the limit. 0 means no limit."""
        if not self._per_hour:
            return
        network, site = client_networks(address)
        wait_s = await self._network.add(self._database, str(network))
        if site is not None and not wait_s:
            wait_s = await self._site.add(self._database, str(site))
        if wait_s:
            raise TooManyGuests(wait_s)


class GuestSignIn(Struct, frozen=True):
    store: DeviceKeyStore
    tokens: SessionTokens
    authentication_data: AuthenticationDataIssuer
    applications: ApplicationDirectory
    requirement: UsedFactorRequirement
    limit: NewGuestLimit
    refusals: Refusals
    clock: DatabaseClock
    end_sign_in: Callable[[str, Sequence[str]], Awaitable[None]]
    appeal_url: str = ""

    async def check_proof(self, request: GuestRequest, address: Address) -> None:
        """Raises a violation unless the key has signed the body within the last minutes."""
        if not request.key.has_signed(request.signature, request.body):
            raise await self._refuse(WRONG_SIGNATURE, address)
        now = int(self.clock.now())
        if abs(now - request.ts) > MAX_CLOCK_DIFFERENCE_S:
            expected = f"ts within {MAX_CLOCK_DIFFERENCE_S} seconds of {now}"
            raise await self._refuse(ProofFailure("stale ts", expected, str(request.ts)), address)

    async def sign_in(self, request: GuestRequest, options: LoginOptions, peer: Address) -> dict[str, Any]:
        """Returns the authentication data of the user of the key, whose proof was checked."""
        authentication = by_device_key()
        self.requirement.check(second_factor=authentication.has_second_factor)
        new = self.tokens.prepare(authentication, options, device_key=request.key.digest)
        nonce = hashlib.sha256(request.key.digest + request.nonce.encode()).digest()
        result = await self._present(request.key, nonce, new.columns, peer, options.application_ids)
        if result is None or result.user is None:
            LOGINS.add(METHOD, "wrong_credentials")
            raise InvalidCredentials
        if result.ban:
            LOGINS.add(METHOD, "not_allowed")
            raise Banned(result.ban, self.appeal_url)
        if not result.is_new:
            raise await self._refuse(REPEATED_NONCE, peer)
        signed_in = SignedIn(result.user, authentication)
        try:
            permissions = await self.applications.permissions(result.user, options.address, options.application_ids)
        except ApiError:
            await self.end_sign_in(result.user.user_id, [new.sign_in_id])
            raise
        LOGINS.add(METHOD, "success")
        issued = self.tokens.issued(new, authentication, result.validated_at)
        return self.authentication_data.render(signed_in, options, issued, permissions)

    async def _present(
        self, key: DeviceKey, nonce: bytes, tokens: dict[str, Any], peer: Address, application_ids: Collection[int]
    ) -> KeySignIn | None:
        result = await self.store.sign_in(nonce, tokens)
        if result is None or result.is_known:
            return result
        await self.limit.count(peer)
        await self.store.create_guest(key.digest, key.algorithm, str(peer), application_ids)
        return await self.store.sign_in(nonce, tokens)

    async def _refuse(self, failure: ProofFailure, address: Address) -> ApiError:
        LOGINS.add(METHOD, "wrong_credentials")
        return await self.refusals.refuse("", failure, address)
