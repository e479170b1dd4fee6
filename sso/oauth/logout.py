"""Signing out at a site's request (RP-initiated logout): only with proof of who is meant, or when they agree."""

from dataclasses import dataclass

from sso.accounts.sessions import Session
from sso.oauth.authorization_request import MAX_STATE, Parameters, ascii_of
from sso.oauth.client_store import ClientStore
from sso.oauth.errors import InvalidRedirectUri, InvalidRequest
from sso.oauth.redirect_uris import Redirect, match_post_logout_redirect_uri
from sso.oauth.tokens import TokenIssuer

PARAMETERS = ("id_token_hint", "client_id", "post_logout_redirect_uri", "state", "ui_locales")


@dataclass(frozen=True)
class LogoutRequest:
    """``sub`` is who the site has shown to mean; ``target`` where they go afterwards."""

    sub: str | None
    site: str
    target: Redirect | None
    state: bytes | None

    def may_end(self, session: Session) -> bool:
        """Without asking: the site holds an id_token of this very user."""
        return self.sub == session.user.user_id

    @property
    def url(self) -> str | None:
        return self.target.answer(state=self.state) if self.target else None


class Logout:
    def __init__(self, clients: ClientStore, tokens: TokenIssuer, *, any_http: bool) -> None:
        self._clients = clients
        self._tokens = tokens
        self._any_http = any_http

    async def read(self, given: Parameters | None) -> LogoutRequest:
        """NotTheirs if people would be sent to an address that is not the site's."""
        if given is None or len(given.only("state") or b"") > MAX_STATE:
            raise InvalidRequest("too many parameters, or state is too long")
        for name in sorted(given.repeated(PARAMETERS)):
            raise InvalidRequest(f"{name} stands there more than once")
        hint = self._tokens.read_hint(ascii_of(given, "id_token_hint"))
        named = ascii_of(given, "client_id")
        if hint and named and named != hint.client_id:
            raise InvalidRedirectUri("client_id is not the client of id_token_hint")
        client_id = hint.client_id if hint else named
        client = await self._clients.get(client_id) if client_id else None
        if client is not None and client.disabled:
            client = None  # it asks for nothing any more, nor do its id_tokens
        uri = ascii_of(given, "post_logout_redirect_uri")
        target = None
        if uri:
            if client is None:
                raise InvalidRedirectUri(
                    "post_logout_redirect_uri needs the client_id or id_token_hint of a client in use"
                )
            target = match_post_logout_redirect_uri(
                uri, client.redirect_hosts, client.redirect_uris, any_http=self._any_http
            )
            if target is None:
                raise InvalidRedirectUri("post_logout_redirect_uri is not an address of the client")
        sub = hint.sub if hint and client else None
        return LogoutRequest(sub, client.title if client else "", target, given.only("state"))
