"""Sign-in with another provider: from the button to the user, or to an identity that no user is linked to yet.

An identity is never linked by its e-mail address, verified or not: the owner of an account must sign in to it.
"""

from collections.abc import Mapping

import structlog
from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.authentication_context import UPSTREAM_AUTH
from sso.accounts.errors import AccountClosed
from sso.accounts.model import User
from sso.accounts.session_store import Session
from sso.telemetry.counters import LOGINS
from sso.upstream.attempt_store import AttemptStore, BegunAttempt
from sso.upstream.errors import AccountDisabled, AttemptExpired, UnknownProvider, UpstreamError
from sso.upstream.identity_store import PendingIdentities, PendingIdentity
from sso.upstream.link_conflict_store import LinkConflicts
from sso.upstream.linked_identities import IdentityTaken, LinkedIdentities
from sso.upstream.model import Attempt, IdentityProvider, ProviderAdapter, UpstreamIdentity
from sso.upstream.provider_store import ProviderStore

MAX_CLOCK_SKEW_S = 60
METHOD = "provider"  # names these logins in the metrics
log = structlog.get_logger()


class UserIdentified(Struct, frozen=True):
    """``needs_code``: the second factor of the account is still missing.

    ``is_new_login``: the provider says that the person has just authenticated there, and was not signed in silently.
    """

    user: User
    needs_code: bool
    next_path: str
    is_new_login: bool


class IdentityLinked(Struct, frozen=True):
    """The identity that a signed-in user wanted to link is linked."""


class IdentityBelongsToOther(Struct, frozen=True):
    """The identity that a signed-in user wanted to link belongs to another account.

    ``can_decide``: it is remembered, so that the owner of both can move it.
    """

    can_decide: bool = False


class LinkingUserRevoked(Struct, frozen=True):
    """The user who wanted to link the identity was revoked meanwhile, for example by a new password. Not linked."""


class IdentityUnknown(Struct, frozen=True):
    """No user is linked to the identity; it waits in ``PendingIdentities``."""


LinkOutcome = IdentityLinked | IdentityBelongsToOther | LinkingUserRevoked
UpstreamOutcome = UserIdentified | LinkOutcome | IdentityUnknown


class UpstreamSignIn:
    def __init__(
        self,
        providers: ProviderStore,
        adapters: Mapping[str, ProviderAdapter],
        attempts: AttemptStore,
        links: LinkedIdentities,
        pending: PendingIdentities,
        conflicts: LinkConflicts,
        base_url: str,
    ) -> None:
        self._providers = providers
        self._adapters = adapters
        self._attempts = attempts
        self._links = links
        self._pending = pending
        self._conflicts = conflicts
        self._base_url = base_url

    async def provider(self, provider_id: str) -> IdentityProvider:
        """Raises UnknownProvider if there is no such provider for browsers, or it is disabled."""
        provider = await self._providers.get(provider_id)
        if provider is None or provider.disabled or provider.is_for_tickets:
            raise UnknownProvider
        return provider

    async def begin(
        self,
        provider: IdentityProvider,
        browser_secret: str,
        next_path: str,
        user_id: str | None = None,
        *,
        needs_new_login: bool = False,
    ) -> str:
        """Returns the URL at the provider. With ``user_id``, that user links the identity. Raises UpstreamError."""
        attempt = Attempt.new(browser_secret, self._callback_url(provider), needs_new_login=needs_new_login)
        url = await self._adapters[provider.kind].authorization_url(provider, attempt)
        await self._attempts.put(provider.provider_id, attempt, next_path, user_id)
        return url

    async def use_attempt(self, provider: IdentityProvider, browser_secret: str, state: str) -> BegunAttempt:
        """Raises AttemptExpired unless this browser began a sign-in at this provider with this state."""
        begun = await self._attempts.use(provider.provider_id, state, browser_secret) if browser_secret else None
        if begun is None:
            raise AttemptExpired("the state is unknown, used, expired, or of another browser or provider")
        return begun

    async def finish(
        self,
        provider: IdentityProvider,
        begun: BegunAttempt,
        browser_secret: str,
        answer: Mapping[str, str],
        session: Session | None,
    ) -> UpstreamOutcome:
        """Verifies the answer and finds the user. Raises UpstreamError, and AccountClosed if it will be deleted."""
        attempt = Attempt(answer.get("state", ""), browser_secret, self._callback_url(provider))
        adapter = self._adapters[provider.kind]
        try:
            identity = await adapter.identify(provider, self._providers.secret(provider), attempt, answer)
        except UpstreamError:
            LOGINS.add(METHOD, "failed")
            raise
        if not provider.keep_tokens:
            identity = replace(identity, tokens=None)
        user = await self._links.use(provider, identity)
        if begun.user_id is not None:
            return await self._link(provider, begun, browser_secret, identity, user, session)
        if user is None:
            LOGINS.add(METHOD, "unknown_identity")
            await self._keep(browser_secret, provider, _with_new_login_only(identity, begun), begun.next_path)
            return IdentityUnknown()
        needs_code = bool(user.second_factors) and not provider.trusted_second_factor
        if user.is_closed:
            LOGINS.add(METHOD, "account_closed")
            raise AccountClosed(user, UPSTREAM_AUTH, needs_code=needs_code)
        if user.disabled:
            LOGINS.add(METHOD, "disabled")
            raise AccountDisabled(f"user {user.user_id} is disabled")
        log.info("upstream.sign_in_succeeded", provider=provider.provider_id, user=user.user_id)
        LOGINS.add(METHOD, "code_required" if needs_code else "success")
        is_new_login = _with_new_login_only(identity, begun).auth_time > 0
        return UserIdentified(user, needs_code, begun.next_path, is_new_login)

    async def _link(
        self,
        provider: IdentityProvider,
        begun: BegunAttempt,
        browser_secret: str,
        identity: UpstreamIdentity,
        user: User | None,
        session: Session | None,
    ) -> UpstreamOutcome:
        """Links the identity to the user who asked for it and who is still signed in."""
        if session is None or session.user.user_id != begun.user_id:
            if user is None:  # the page asks for a new sign-in before it links
                await self._keep(browser_secret, provider, identity, "/account")
                return IdentityUnknown()
            return IdentityBelongsToOther()
        if user is not None and user.user_id != begun.user_id:
            await self._conflicts.record(session.user, provider.provider_id, identity.subject, browser_secret)
            return IdentityBelongsToOther(can_decide=True)
        if user is not None:
            return IdentityLinked()
        return await self.link(session, provider, identity)

    async def link(self, session: Session, provider: IdentityProvider, identity: UpstreamIdentity) -> LinkOutcome:
        try:
            if not await self._links.link(session.user, provider, identity):
                return LinkingUserRevoked()
        except IdentityTaken:
            return IdentityBelongsToOther()
        log.info("upstream.identity_linked", provider=provider.provider_id, user=session.user.user_id)
        return IdentityLinked()

    async def _keep(
        self, browser_secret: str, provider: IdentityProvider, identity: UpstreamIdentity, next_path: str
    ) -> None:
        await self._pending.put(browser_secret, PendingIdentity(provider.provider_id, identity, next_path))

    def _callback_url(self, provider: IdentityProvider) -> str:
        return callback_url(self._base_url, provider.provider_id)


def _with_new_login_only(identity: UpstreamIdentity, begun: BegunAttempt) -> UpstreamIdentity:
    """Returns the identity without the time of an authentication that was before this sign-in began."""
    return identity if identity.auth_time >= begun.begun - MAX_CLOCK_SKEW_S else replace(identity, auth_time=0)


def callback_url(base_url: str, provider_id: str) -> str:
    """Each provider has a path of its own, so that the answer of one is never taken for another's (mix-up)."""
    return f"{base_url}/login/upstream/{provider_id}/callback"
