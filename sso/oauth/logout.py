"""Signing out at a site's request (RP-initiated logout): only with proof of who is meant, or when they agree."""

from dataclasses import dataclass

from sso.accounts.sessions import Session
from sso.oauth.clients import Clients
from sso.oauth.errors import InvalidRequest, NotTheirs
from sso.oauth.issue import Tokens
from sso.oauth.redirects import Redirect, judge_after_logout
from sso.oauth.request import STATE_MOST, Parameters, ascii_of

PARAMETERS = ("id_token_hint", "client_id", "post_logout_redirect_uri", "state", "ui_locales")


@dataclass(frozen=True)
class Leaving:
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
    def __init__(self, clients: Clients, tokens: Tokens, *, any_http: bool) -> None:
        self._clients = clients
        self._tokens = tokens
        self._any_http = any_http

    async def read(self, given: Parameters | None) -> Leaving:
        """NotTheirs if people would be sent to an address that is not the site's."""
        if given is None or len(given.only("state") or b"") > STATE_MOST:
            raise InvalidRequest("too many parameters, or state is too long")
        for name in sorted(given.repeated(PARAMETERS)):
            raise InvalidRequest(f"{name} stands there more than once")
        hint = self._tokens.read_hint(ascii_of(given, "id_token_hint"))
        named = ascii_of(given, "client_id")
        if hint and named and named != hint.client_id:
            raise NotTheirs("client_id is not the client of id_token_hint")
        client_id = hint.client_id if hint else named
        client = await self._clients.get(client_id) if client_id else None
        if client is not None and client.disabled:
            client = None  # it asks for nothing any more, nor do its id_tokens
        uri = ascii_of(given, "post_logout_redirect_uri")
        target = None
        if uri:
            if client is None:
                raise NotTheirs("post_logout_redirect_uri needs the client_id or id_token_hint of a client in use")
            target = judge_after_logout(uri, client.redirect_hosts, client.redirect_uris, any_http=self._any_http)
            if target is None:
                raise NotTheirs("post_logout_redirect_uri is not an address of the client")
        sub = hint.sub if hint and client else None
        return Leaving(sub, client.title if client else "", target, given.only("state"))
