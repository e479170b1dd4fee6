"""Logout at the request of a client (OpenID Connect RP-Initiated Logout): validates the request."""

from msgspec import Struct

from sso.accounts.session_store import Session
from sso.oauth.authorization.request import MAX_STATE, Parameters
from sso.oauth.clients.redirect_uris import Redirect, match_post_logout_redirect_uri
from sso.oauth.clients.store import ClientStore
from sso.oauth.errors import InvalidRedirectUri, InvalidRequest
from sso.oauth.model import Client
from sso.oauth.tokens.issuer import IdTokenHint, TokenIssuer

PARAMETERS = ("id_token_hint", "client_id", "post_logout_redirect_uri", "state", "ui_locales")


class LogoutRequest(Struct, frozen=True):
    """A validated logout request.

    ``sub`` is the user of the id_token_hint, ``redirect`` the address that the browser goes to afterwards.
    """

    sub: str | None
    client_title: str
    redirect: Redirect | None
    state: bytes | None

    def needs_no_confirmation(self, session: Session) -> bool:
        """Returns whether the client has an ID token of the session's user."""
        return self.sub == session.user.user_id

    @property
    def url(self) -> str | None:
        return self.redirect.with_parameters(state=self.state) if self.redirect else None


class Logout:
    def __init__(self, clients: ClientStore, token_issuer: TokenIssuer, *, allow_http: bool) -> None:
        self._clients = clients
        self._token_issuer = token_issuer
        self._allow_http = allow_http

    async def validate(self, parameters: Parameters | None) -> LogoutRequest:
        """Raises InvalidRedirectUri if post_logout_redirect_uri does not belong to the client."""
        if parameters is None or len(parameters.single_value("state") or b"") > MAX_STATE:
            raise InvalidRequest(f"expected fewer parameters, and a state of at most {MAX_STATE} bytes")
        for name in sorted(parameters.repeated(PARAMETERS)):
            raise InvalidRequest(f"{name} must not appear more than once")
        hint = self._token_issuer.read_id_token_hint(parameters.ascii_text("id_token_hint"))
        client = await self._find_client(parameters.ascii_text("client_id"), hint)
        uri = parameters.ascii_text("post_logout_redirect_uri")
        return LogoutRequest(
            sub=hint.sub if hint and client else None,
            client_title=client.title if client else "",
            redirect=self._match_redirect(uri, client) if uri else None,
            state=parameters.single_value("state"),
        )

    async def _find_client(self, client_id: str, hint: IdTokenHint | None) -> Client | None:
        """Returns the client of the request, or None if it names none, or one that is unknown or disabled."""
        if hint and client_id and client_id != hint.client_id:
            raise InvalidRedirectUri("client_id is not the client of id_token_hint")
        client_id = hint.client_id if hint else client_id
        client = await self._clients.get(client_id) if client_id else None
        return None if client is None or client.disabled else client

    def _match_redirect(self, uri: str, client: Client | None) -> Redirect:
        if client is None:
            raise InvalidRedirectUri(
                "post_logout_redirect_uri needs the client_id or id_token_hint of an enabled client"
            )
        redirect = match_post_logout_redirect_uri(
            uri,
            client.redirect_hosts,
            client.redirect_uris,
            client.post_logout_redirect_uris,
            allow_http=self._allow_http,
        )
        if redirect is None:
            raise InvalidRedirectUri("post_logout_redirect_uri does not belong to the client")
        return redirect
