"""Sign-in with the ticket of a store: the ticket is verified, used up, and finds or creates its player."""

from functools import partial

import structlog

from sso.accounts.authentication_context import TICKET, by_store_ticket
from sso.accounts.errors import AccountClosed, InvalidCredentials
from sso.accounts.login.code_check import CodeCheck
from sso.accounts.login.rate_limit import LoginRateLimiter
from sso.accounts.model import SignedIn, User
from sso.accounts.second_factor.requirement import UsedFactorRequirement
from sso.core.errors import Conflict, Forbidden
from sso.core.net import Address
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.telemetry.counters import LOGINS
from sso.upstream.attempt_store import nonce_is_used
from sso.upstream.identity_store import find_link
from sso.upstream.link_conflict_store import LinkConflicts
from sso.upstream.linked_identities import LinkedIdentities
from sso.upstream.model import IdentityProvider
from sso.upstream.tickets.model import StoreAccount, Ticket
from sso.upstream.tickets.player_store import LinkedElsewhere, NoPlayer, Player, TicketUsed, use_ticket
from sso.upstream.tickets.verification import METHOD, StoreUnavailable, TicketVerification

log = structlog.get_logger()


class NotLinked(Forbidden):
    message = "no account is linked with this store account"


class LinkedToAnother(Conflict):
    message = "linked to another account"


class TicketSignIn:
    def __init__(
        self,
        database: Database,
        links: LinkedIdentities,
        verification: TicketVerification,
        rate_limiter: LoginRateLimiter,
        codes: CodeCheck,
        requirement: UsedFactorRequirement,
        conflicts: LinkConflicts,
    ) -> None:
        self._database = database
        self._links = links
        self._verification = verification
        self._rate_limiter = rate_limiter
        self._codes = codes
        self._requirement = requirement
        self._conflicts = conflicts

    async def sign_in(
        self,
        provider_id: str,
        ticket: Ticket,
        otp: str,
        peer: Address,
        language: str,
        guest: User | None = None,
    ) -> tuple[SignedIn, bool]:
        """Returns the sign-in, and whether its user is new.

        Wrong tickets, and those that were used before, count like failed logins of the address.

        With ``guest``, a store account that is not linked is linked to this guest; another user's is never moved.

        Raises InvalidCredentials, Banned, StoreUnavailable, NotLinked, LinkedToAnother, AccountClosed, OtpRequired,
        SecondFactorNotUsed, TooManyAttempts or FieldError. Only a ticket that signs in is used up.
        """
        provider = await self._verification.provider(provider_id)
        await self._rate_limiter.charge_address(peer)
        try:
            account = await self._verification.verify(provider, ticket)
        except StoreUnavailable:
            await self._rate_limiter.refund_address(peer)
            raise
        # Before anything else: a used ticket must neither send codes nor tell anything about its user.
        if await nonce_is_used(self._database, provider_id, account.ticket_id):
            raise _used_ticket(provider)
        await self._rate_limiter.refund_address(peer)  # the ticket is correct, even if its user may not sign in
        signed_in = await self._check_user(provider, account, otp, peer, guest)
        player = await self._use_ticket(provider, account, guest, language, peer)
        if signed_in is None or signed_in.user.user_id != player.user.user_id:
            if player.user.second_factors:  # another user got the link meanwhile, whose code is missing
                raise InvalidCredentials
            signed_in = SignedIn(player.user, by_store_ticket())
        LOGINS.add(METHOD, "success")
        log.info("upstream.ticket_accepted", provider=provider_id, user=player.user.user_id, created=player.is_new)
        return signed_in, player.is_new

    async def _check_user(
        self, provider: IdentityProvider, account: StoreAccount, otp: str, peer: Address, guest: User | None
    ) -> SignedIn | None:
        """Returns the sign-in of a user who exists. The second factor is needed as after other providers."""
        link = await find_link(self._database, provider.provider_id, account.subject)
        if link is None:
            self._requirement.check(second_factor=False)
            return None
        user: User = link[1]
        if guest is not None and user.user_id != guest.user_id:
            await self._conflicts.record(guest, provider.provider_id, account.subject)
            raise LinkedToAnother
        needs_code = bool(user.second_factors) and not provider.trusted_second_factor
        if user.is_closed:
            LOGINS.add(METHOD, "account_closed")
            raise AccountClosed(user, TICKET, needs_code=needs_code)
        if user.disabled:
            LOGINS.add(METHOD, "disabled")
            raise InvalidCredentials
        signed_in = SignedIn(user, by_store_ticket())
        if needs_code:
            signed_in = await self._codes.check(user, otp, peer, "", by_store_ticket())
        self._requirement.check_sign_in(signed_in)
        return signed_in

    async def _use_ticket(
        self, provider: IdentityProvider, account: StoreAccount, guest: User | None, language: str, peer: Address
    ) -> Player:
        work = partial(
            use_ticket,
            links=self._links,
            provider=provider,
            account=account,
            guest=guest,
            language=language,
            address=str(peer),
        )
        try:
            try:
                return await self._database.transaction(work)
            except UniqueViolation:  # another ticket has just created the player, who is found now
                return await self._database.transaction(work)
        except TicketUsed:  # by a concurrent request
            await self._rate_limiter.charge_address(peer)
            raise _used_ticket(provider) from None
        except LinkedElsewhere:
            raise LinkedToAnother from None
        except NoPlayer:
            LOGINS.add(METHOD, "unknown_identity")
            raise NotLinked from None


def _used_ticket(provider: IdentityProvider) -> InvalidCredentials:
    """Returns the error about a ticket that was used before, after counting and logging it."""
    LOGINS.add(METHOD, "wrong_credentials")
    log.info("upstream.ticket_refused", provider=provider.provider_id, reason="the ticket was used before")
    return InvalidCredentials()
