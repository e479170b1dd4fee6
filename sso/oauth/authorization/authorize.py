"""GET /proxy/oauth/authorize: decides whether the user must sign in or consent before the client gets a code."""

from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.authentication_context import satisfies_acr
from sso.accounts.model import SignedIn
from sso.accounts.session_store import Session
from sso.core.net import Address
from sso.db.clock import DatabaseClock
from sso.db.rate_limit import RateLimiter
from sso.oauth.authorization.code_at_sign_in import CodeAtSignIn
from sso.oauth.authorization.request import Parameters, validate
from sso.oauth.authorization.response import Answer, AuthorizationResponses
from sso.oauth.authorization.session_rules import (
    accepts,
    can_satisfy_acr,
    is_hinted_user,
    is_requested_user,
    must_always_consent,
    satisfies,
)
from sso.oauth.authorization.store import AuthorizationStore
from sso.oauth.clients.redirect_uris import NOT_A_URI, NOT_REGISTERED, Redirect, match_redirect_uri
from sso.oauth.errors import (
    AuthorizationError,
    AuthorizationFinished,
    ClientAwaitsApproval,
    InvalidRedirectUri,
    InvalidTarget,
    TooManyAuthorizations,
    UnregisteredRedirectUri,
)
from sso.oauth.model import AuthorizationRequest, Client, PendingAuthorization
from sso.oauth.registration.metadata_documents import MetadataDocuments
from sso.oauth.tokens.issuer import TokenIssuer
from sso.oauth.tokens.resources import ResourceServers


class ShowSignIn(Struct, frozen=True):
    """Show the sign-in form; the authorization resumes after the sign-in."""

    pending: PendingAuthorization


class AskConsent(Struct, frozen=True):
    """Ask the user to confirm the account, and with ``consent`` also the scopes."""

    pending: PendingAuthorization
    session: Session
    consent: bool


Outcome = Answer | ShowSignIn | AskConsent


class Authorize:
    def __init__(
        self,
        clients: MetadataDocuments,
        authorizations: AuthorizationStore,
        token_issuer: TokenIssuer,
        resource_servers: ResourceServers,
        responses: AuthorizationResponses,
        clock: DatabaseClock,
        rate: RateLimiter,
        *,
        allow_http: bool,
    ) -> None:
        self._rate = rate
        self.responses = responses
        self._clients = clients
        self._resource_servers = resource_servers
        self._authorizations = authorizations
        self._token_issuer = token_issuer
        self._clock = clock
        self._allow_http = allow_http

    async def find_client(self, parameters: Parameters | None, address: Address) -> tuple[Client, Redirect]:
        """Returns the client and its redirect URI, or raises InvalidRedirectUri.

        Errors are sent to the redirect URI only when both are known to be valid (RFC 6749 section 4.1.2.1).
        """
        if parameters is None:
            raise InvalidRedirectUri("the query has too many parameters")
        client_id, uri = parameters.ascii_text("client_id"), parameters.ascii_text("redirect_uri")
        for name, value in (("client_id", client_id), ("redirect_uri", uri)):
            if not value:
                raise InvalidRedirectUri(f"{name} is missing, repeated or not ASCII")
        client = await self._clients.find_client(client_id, address)
        if client is None:
            raise InvalidRedirectUri("there is no client with this client_id")
        return client, self._match_redirect(client, uri)

    def recent_request(self, parameters: Parameters | None) -> AuthorizationRequest | None:
        """Returns the validated request of a client that was read lately, or None if the client must be read.

        The client may have changed since. The statement that saves the request or issues a code finds out, and then
        `begin` raises InvalidRedirectUri.
        """
        recent = self._clients.recent(parameters.ascii_text("client_id")) if parameters else None
        if parameters is None or recent is None:
            return None
        try:
            redirect = self._match_redirect(recent.client, parameters.ascii_text("redirect_uri"))
            request = self._validate(parameters, recent.client, redirect)
        except (AuthorizationError, InvalidRedirectUri):
            return None
        needs_other_rows = request.resources or "none" in request.prompts
        return None if needs_other_rows else replace(request, client_version=recent.version)

    def _match_redirect(self, client: Client, uri: str) -> Redirect:
        """Raises InvalidRedirectUri if the client may not be used, or not with this redirect URI."""
        if not client.approved:
            raise ClientAwaitsApproval("the client waits for the approval of an administrator")
        if client.disabled:
            raise InvalidRedirectUri("the client is disabled")
        redirect = match_redirect_uri(uri, client.redirect_hosts, client.redirect_uris, allow_http=self._allow_http)
        if client.rules.has_exact_redirect_uris and uri not in client.redirect_uris:
            redirect = NOT_A_URI
        if isinstance(redirect, str) and redirect in NOT_REGISTERED:
            raise UnregisteredRedirectUri(f"redirect_uri: {redirect}", uri, client.client_id)
        if isinstance(redirect, str):
            raise InvalidRedirectUri(f"redirect_uri: {redirect}")
        return redirect

    async def validate(
        self, parameters: Parameters, client: Client, redirect: Redirect, *, is_pushed: bool = False
    ) -> AuthorizationRequest:
        """Returns the validated request, or raises AuthorizationError."""
        request = self._validate(parameters, client, redirect, is_pushed=is_pushed)
        if request.resources:
            try:
                await self._resource_servers.require(request.resources)
            except InvalidTarget as error:
                raise AuthorizationError(error.code, str(error)) from None
        return request

    def _validate(
        self, parameters: Parameters, client: Client, redirect: Redirect, *, is_pushed: bool = False
    ) -> AuthorizationRequest:
        def subject_of(id_token: str) -> str | None:
            hint = self._token_issuer.read_id_token_hint(id_token)
            return hint.sub if hint and hint.client_id == client.client_id else None

        return validate(parameters, client, redirect, subject_of, is_pushed=is_pushed)

    async def begin(self, request: AuthorizationRequest, session: Session | None) -> Outcome:
        """Starts the authorization. Raises AuthorizationError if prompt=none forbids a page that is needed."""
        no_prompt = "none" in request.prompts
        consent = session is not None and await self._must_consent(request, session)
        if no_prompt and consent:
            # Before anything else, so that the site does not learn who is signed in, or since when.
            raise AuthorizationError("consent_required", "the user must consent")
        if session is None or not satisfies(session, request, self._clock.utc()):
            if no_prompt:
                raise AuthorizationError("login_required", "the user must sign in")
            return await self._show_sign_in(request, session)
        if no_prompt and not is_hinted_user(request, session):
            raise AuthorizationError("account_selection_required", "another user than that of login_hint is signed in")
        if not satisfies_acr(session.auth, request.acr_values):
            if no_prompt or not can_satisfy_acr(request, session.user):
                raise _unmet_requirements(request)
            stepped_up = replace(request, prompts=request.prompts | {"login"})
            return await self._show_sign_in(stepped_up, session)
        if consent or "select_account" in request.prompts:
            return AskConsent(await self._save(request, session), session, consent)
        return await self._finish(request, session, None, consented=False)

    async def _show_sign_in(self, request: AuthorizationRequest, session: Session | None) -> ShowSignIn:
        pending = await self._save(request, session)
        self._authorizations.remember(pending)
        return ShowSignIn(pending)

    async def _save(self, request: AuthorizationRequest, session: Session | None) -> PendingAuthorization:
        """Stores the authorization until the user has answered. Raises TooManyAuthorizations.

        Without a session, the caller has counted the request for its network.
        """
        if session and (wait_s := await self._rate.add_subject(f"user {session.user.user_id}")):
            raise TooManyAuthorizations(wait_s)
        return await self._authorizations.save(request)

    async def get_pending(self, request_id: str, *, remembered: bool = False) -> PendingAuthorization:
        """Raises AuthorizationFinished if the authorization is finished or has expired.

        ``remembered``: it may be as it was when the sign-in page was made. A statement then checks it.
        """
        pending = self._authorizations.take_remembered(request_id) if remembered else None
        pending = pending or await self._authorizations.find(request_id)
        if pending is None:
            raise AuthorizationFinished
        return pending

    async def resume(self, pending: PendingAuthorization, session: Session | None) -> Outcome:
        """Continues after a sign-in."""
        if session is None or not accepts(pending, session):
            if session and session.created >= pending.created and not is_requested_user(pending.request, session):
                await self._authorizations.finish(pending.id)
                raise AuthorizationError("login_required", "another user signed in")
            return ShowSignIn(pending)
        await self._require_acr(pending, session)
        consent = await self._must_consent(pending.request, session)
        must_confirm_account = "select_account" in pending.request.prompts and session.created < pending.created
        if consent or must_confirm_account:
            return AskConsent(pending, session, consent)
        return await self._finish(pending.request, session, pending, consented=False)

    def code_at_sign_in(self, pending: PendingAuthorization, signed_in: SignedIn) -> CodeAtSignIn | None:
        """Returns the code that a sign-in with a password gets at once, or None if `resume` must decide."""
        request = pending.request
        must_ask = must_always_consent(request) or request.client.consent
        if must_ask or request.response_mode == "form_post" or request.sub not in (None, signed_in.user.user_id):
            return None
        if not signed_in.authentication.is_fresh or not satisfies_acr(signed_in.auth, request.acr_values):
            return None
        return self._authorizations.code_at_sign_in(request, pending)

    async def decide(self, pending: PendingAuthorization, session: Session, decision: str) -> Outcome:
        """Continues after the user's decision: "allow", or "other" to use another account. Any other value denies."""
        if decision == "other":
            await self._authorizations.require_new_login(pending.id)
            return ShowSignIn(pending)
        if decision != "allow":
            await self._authorizations.finish(pending.id)
            raise AuthorizationError("access_denied", "the user denied the request")
        if not accepts(pending, session):
            return ShowSignIn(pending)
        await self._require_acr(pending, session)
        consented = pending.request.client.consent or "consent" in pending.request.prompts
        return await self._finish(pending.request, session, pending, consented=consented)

    async def _require_acr(self, pending: PendingAuthorization, session: Session) -> None:
        """Ends the authorization if the user has just signed in, but with less than the client needs."""
        if not satisfies_acr(session.auth, pending.request.acr_values):
            await self._authorizations.finish(pending.id)
            raise _unmet_requirements(pending.request)

    async def _must_consent(self, request: AuthorizationRequest, session: Session) -> bool:
        if must_always_consent(request):
            return True
        if not request.client.consent:
            return False
        consented = await self._authorizations.consented_scopes(session.user.user_id, request.client.client_id)
        return not consented.issuperset(request.disclosed_scopes)

    async def _finish(
        self, request: AuthorizationRequest, session: Session, pending: PendingAuthorization | None, *, consented: bool
    ) -> Outcome:
        if consented:
            await self._authorizations.save_consent(session, request.client, request.disclosed_scopes)
        code = await self._authorizations.issue_code(request, session, pending)
        if code is None:
            return ShowSignIn(pending) if pending else await self._show_sign_in(request, session)
        return self.responses.with_code(request, code)


def _unmet_requirements(request: AuthorizationRequest) -> AuthorizationError:
    return AuthorizationError(
        "unmet_authentication_requirements",  # RFC 9470
        f"the user has not signed in as acr_values requires: expected one of {', '.join(request.acr_values)}",
        recorded="the user has not signed in as acr_values requires",
    )
