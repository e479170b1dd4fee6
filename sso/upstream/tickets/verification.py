"""Asks stores about tickets, with limits that keep a slow store from taking what other sign-ins need."""

from collections import defaultdict
from collections.abc import Mapping

import structlog
import trio

from sso.accounts.errors import InvalidCredentials
from sso.core.errors import RetryLater
from sso.core.field_errors import FieldError
from sso.telemetry.counters import LOGINS
from sso.upstream.errors import UpstreamError
from sso.upstream.model import IdentityProvider
from sso.upstream.provider_store import ProviderStore
from sso.upstream.tickets.model import StoreAccount, StoreVerifier, Ticket, TicketRefused

METHOD = "ticket"  # names these logins in the metrics
MAX_VERIFICATIONS = 16  # at the same time, for one provider in this worker
MAX_WAITING = 64  # for one provider in this worker
VERIFICATION_S = 10.0  # with the time of waiting
RETRY_S = 5
log = structlog.get_logger()


class StoreUnavailable(RetryLater):
    """The store does not answer, or does not accept the record of the provider. The ticket can be sent again."""

    status = 503
    code = "temporarily_unavailable"
    message = "the store does not answer, try again later"


class TicketVerification:
    def __init__(self, providers: ProviderStore, verifiers: Mapping[str, StoreVerifier]) -> None:
        self._providers = providers
        self._verifiers = verifiers
        self._limiters: dict[str, trio.CapacityLimiter] = defaultdict(lambda: trio.CapacityLimiter(MAX_VERIFICATIONS))

    async def provider(self, provider_id: str) -> IdentityProvider:
        """Raises FieldError unless there is such a provider for tickets, and it is not disabled."""
        provider = await self._providers.get(provider_id)
        if provider is None or provider.disabled or not provider.is_for_tickets:
            raise FieldError(("provider",), "expected the id of an identity provider for tickets")
        return provider

    async def verify(self, provider: IdentityProvider, ticket: Ticket) -> StoreAccount:
        """Returns the store account. Raises InvalidCredentials, StoreUnavailable or FieldError."""
        try:
            with trio.fail_after(VERIFICATION_S):
                return await self._ask_store(provider, ticket)
        except TicketRefused as refused:
            LOGINS.add(METHOD, "wrong_credentials")
            log.info("upstream.ticket_refused", provider=provider.provider_id, reason=refused.reason)
            raise InvalidCredentials from None
        except (UpstreamError, trio.TooSlowError) as error:
            LOGINS.add(METHOD, "unavailable")
            reason = error.reason if isinstance(error, UpstreamError) else f"no answer in {VERIFICATION_S:g} seconds"
            log.warning("upstream.store_failed", provider=provider.provider_id, reason=reason)
            raise StoreUnavailable(RETRY_S) from None

    async def _ask_store(self, provider: IdentityProvider, ticket: Ticket) -> StoreAccount:
        limiter = self._limiters[provider.provider_id]
        if limiter.statistics().tasks_waiting >= MAX_WAITING:
            raise UpstreamError("too many tickets wait for the store")
        async with limiter:
            return await self._verifiers[provider.kind].verify(provider, self._providers.secret(provider), ticket)
