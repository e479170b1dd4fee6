"""Parsers of the parameters of an authorization request, which anybody can send."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import orjson

from sso.oauth.authorization.requested_claims import MAX_LENGTH, parse_claims
from sso.oauth.clients.redirect_uris import Redirect, browser_origin, match_post_logout_redirect_uri, match_redirect_uri
from sso.oauth.errors import AuthorizationError
from sso.oauth.tokens.claims import requested_claims, scopes_of_requested_claims
from tests.fuzz.target import Target, promise

_HOSTS, _URIS = ("site.example", "http://plain.example"), ("https://site.example/callback?x=1", "http://127.0.0.1/cb")


def redirect_uri(data: bytes) -> None:
    """What is accepted leads to a host of the client in the eyes of another parser, too."""
    uri = data.decode("latin1")
    browser_origin(uri)
    for uris in ((), _URIS):
        hosts = () if uris else _HOSTS
        redirect = match_redirect_uri(uri, hosts, uris)
        if isinstance(redirect, Redirect):
            parts = urlsplit(redirect.with_parameters(code="c"))
            allowed = ("site.example", "plain.example", "127.0.0.1")
            promise(parts.hostname in allowed and parts.username is None, "the redirect leads elsewhere")
            promise(uri.isascii() and uri.isprintable() and not parts.fragment, "the redirect has strange characters")
            promise(redirect.loopback_port is None or 0 < redirect.loopback_port < 65536, "there is no such port")
        match_post_logout_redirect_uri(uri, hosts, uris, allow_http=False)


def claims_parameter(data: bytes) -> None:
    """The claims that are requested one by one. What is stored can be read again."""
    requested = parse_claims(data.decode("latin1"))
    scopes_of_requested_claims(requested.stored)
    for target in ("id_token", "userinfo"):
        requested_claims(_user(requested.stored), target, phone_verified=True)
    orjson.dumps([requested.sub, *requested.acr_values])


def _user(claims: str) -> Any:
    return SimpleNamespace(
        user_id="1", login="a@example.com", nick="Ann", lang="en", email_verified=True, updated_at=1, claims=claims
    )


_REQUESTED_CLAIMS = (
    b'"id_token":{',
    b'"userinfo":{',
    b'"email":null',
    b'"name":{"value":"Ann"}',
    b'"updated_at":{"values":[1,',
    b'"essential":true',
    b'"sub":{"value":"1"}',
    b'"acr":{"essential":true,"values":["',
    b"[" * 70,
    b"]" * 70,
    b'{"a":' * 30,
    b"}" * 30,
    b"\\ud800",
    b"1e400",
    b"}}",
)
_URI_WORDS = (
    b"https://",
    b"http://",
    b"site.example",
    b"@",
    b"\\",
    b":443",
    b":65536",
    b"#",
    b"%0a",
    b"%2f",
    b"?code=",
    b"&",
    b"[::1]",
    b"/callback?x=1",
)

TARGETS = (
    Target(redirect_uri, (), _URI_WORDS, 4096),
    Target(claims_parameter, (AuthorizationError,), _REQUESTED_CLAIMS, MAX_LENGTH),
)
