"""GET /proxy/oauth/authorize: what is still missing before a site may know who is there."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sso.accounts.sessions import Session
from sso.db.errors import DatabaseError
from sso.oauth.authorization_request import Parameters, ascii_of, check
from sso.oauth.authorization_store import AuthorizationStore
from sso.oauth.client_store import ClientStore
from sso.oauth.errors import AuthorizationError, Finished, InvalidRedirectUri
from sso.oauth.model import AuthorizationRequest, Client, PendingAuthorization
from sso.oauth.redirect_uris import Redirect, match_redirect_uri
from sso.oauth.tokens import TokenIssuer


@dataclass(frozen=True)
class RedirectTo:
    """Back to the site."""

    url: str


@dataclass(frozen=True)
class ShowSignIn:
    """Somebody must sign in first, and then go on with this authorization."""

    pending: PendingAuthorization


@dataclass(frozen=True)
class AskConsent:
    """Somebody must say yes: to being who they are, or to what the site wants to know."""

    pending: PendingAuthorization
    session: Session
    consent: bool


Outcome = RedirectTo | ShowSignIn | AskConsent


class Authorize:
    def __init__(
        self, clients: ClientStore, requests: AuthorizationStore, tokens: TokenIssuer, *, any_http: bool
    ) -> None:
        self._clients = clients
        self._requests = requests
        self._tokens = tokens
        self._any_http = any_http

    async def recipient(self, parameters: Parameters | None) -> tuple[Client, Redirect]:
        """Who asks, and where an answer may go. Before this is known, nothing is answered anywhere: NotTheirs."""
        if parameters is None:
            raise InvalidRedirectUri("the query has too many parameters")
        client_id, uri = ascii_of(parameters, "client_id"), ascii_of(parameters, "redirect_uri")
        for name, value in (("client_id", client_id), ("redirect_uri", uri)):
            if not value:
                raise InvalidRedirectUri(f"{name} is missing, repeated or not ASCII")
        client = await self._clients.get(client_id)
        if client is None:
            raise InvalidRedirectUri("there is no client with this client_id")
        if client.disabled:
            raise InvalidRedirectUri("the client is disabled")
        redirect = match_redirect_uri(uri, client.redirect_hosts, client.redirect_uris, any_http=self._any_http)
        if isinstance(redirect, str):
            raise InvalidRedirectUri(redirect)
        return client, redirect

    def check(self, parameters: Parameters, client: Client, redirect: Redirect) -> AuthorizationRequest:
        def subject_of(token: str) -> str | None:
            hint = self._tokens.read_hint(token)
            return hint.sub if hint and hint.client_id == client.client_id else None

        return check(parameters, client, redirect, subject_of)

    async def begin(self, wanted: AuthorizationRequest, session: Session | None) -> Outcome:
        silent = "none" in wanted.prompts
        if session is None or not _fits(wanted, session, datetime.now(UTC)):
            if silent:
                raise AuthorizationError("login_required", "nobody is signed in")
            return ShowSignIn(await self._requests.keep(wanted))
        consent = await self._must_consent(wanted, session)
        if consent or "select_account" in wanted.prompts:
            if silent:
                raise AuthorizationError("consent_required", "the user has not agreed yet")
            return AskConsent(await self._requests.keep(wanted), session, consent)
        return await self._finish(wanted, session, None, consented=False)

    async def pending(self, request_id: str) -> PendingAuthorization:
        pending = await self._requests.find(request_id)
        if pending is None:
            raise Finished
        return pending

    async def resume(self, pending: PendingAuthorization, session: Session | None) -> Outcome:
        """After a sign-in."""
        if session is None or not accepts(pending, session):
            if session and session.created >= pending.created and not _is_wanted(pending.wanted, session):
                await self._requests.answer(pending.id)
                raise AuthorizationError("login_required", "somebody else signed in")
            return ShowSignIn(pending)
        consent = await self._must_consent(pending.wanted, session)
        unchosen = "select_account" in pending.wanted.prompts and session.created < pending.created
        if consent or unchosen:
            return AskConsent(pending, session, consent)
        return await self._finish(pending.wanted, session, pending, consented=False)

    async def decide(self, pending: PendingAuthorization, session: Session, decision: str) -> Outcome:
        """What somebody answered: "allow", "other" (account), or anything else for no."""
        if decision == "other":
            await self._requests.ask_for_another(pending.id)
            return ShowSignIn(pending)
        if decision != "allow":
            await self._requests.answer(pending.id)
            raise AuthorizationError("access_denied", "the user said no")
        if not accepts(pending, session):
            return ShowSignIn(pending)
        consented = pending.wanted.client.consent or "consent" in pending.wanted.prompts
        return await self._finish(pending.wanted, session, pending, consented=consented)

    async def _must_consent(self, wanted: AuthorizationRequest, session: Session) -> bool:
        if "consent" in wanted.prompts:
            return True
        if not wanted.client.consent:
            return False
        agreed = await self._requests.consented(session.user.user_id, wanted.client.client_id)
        return not agreed.issuperset(wanted.scopes)

    async def _finish(
        self, wanted: AuthorizationRequest, session: Session, pending: PendingAuthorization | None, *, consented: bool
    ) -> Outcome:
        if consented:
            await self._requests.consent(session, wanted)
        code = await self._requests.issue_code(wanted, session, pending)
        if code is None:
            return ShowSignIn(pending or await self._requests.keep(wanted))
        return RedirectTo(wanted.redirect.answer(code=code, state=wanted.state))


def told(redirect: Redirect, error: AuthorizationError | DatabaseError, state: bytes | None) -> str:
    """Where the site hears of it."""
    if isinstance(error, DatabaseError):
        error = AuthorizationError("server_error", "the service is not available for a moment, try again")
    return redirect.answer(error=error.error, error_description=error.description, state=state)


def accepts(pending: PendingAuthorization, session: Session) -> bool:
    """Whether this sign-in will do, or a new one is needed: prompt=login, max_age, another account."""
    fresh = pending.login_after is None or session.created >= pending.login_after
    return fresh and _is_wanted(pending.wanted, session)


def _is_wanted(wanted: AuthorizationRequest, session: Session) -> bool:
    return wanted.sub in (None, session.user.user_id)


def _fits(wanted: AuthorizationRequest, session: Session, now: datetime) -> bool:
    if "login" in wanted.prompts or not _is_wanted(wanted, session):
        return False
    return wanted.max_age is None or now - session.created <= timedelta(seconds=wanted.max_age)
