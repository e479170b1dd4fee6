"""A web site (OAuth client) and a browser for tests of OAuth; a test names only what matters to it."""

import base64
import hashlib
import html
import itertools
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import jwt as pyjwt

from tests.kit.builders import PASSWORD
from tests.kit.server import Server

_numbers = itertools.count(1)
_open: list[httpx.Client] = []
AUTHORIZE = "/proxy/oauth/authorize"
TOKEN = "/proxy/oauth/token"
USERINFO = "/proxy/oauth/userinfo"
REVOKE = "/proxy/oauth/token/revoke"
INTROSPECT = "/proxy/oauth/introspect"
PAR = "/proxy/oauth/par"

ALGORITHMS = ["RS256", "ES256", "EdDSA"]
ACR_PASSWORD, ACR_MFA, ACR_PASSKEY = "urn:sso:acr:password", "urn:sso:acr:mfa", "urn:sso:acr:passkey"


@dataclass
class Site:
    """An OAuth client, from the view of the web site."""

    server: Server
    client_id: str
    secret: str | None
    redirect_uri: str = "https://game.example.com/cb"
    profile: str = "strict"
    http: httpx.Client = field(init=False)
    _keys: dict[str, pyjwt.PyJWK] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.http = _new_client(self.server)

    def query(self, **changes: str | None) -> dict[str, str]:
        """Returns the parameters of a valid authorization request; None leaves a parameter out."""
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "response_mode": "query",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": "openid offline_access",
            "state": "s-1",
            "nonce": "n-1",
            **changes,
        }
        return {name: value for name, value in parameters.items() if value is not None}

    def bearer(self, redirect_uri: str | None = None, secret: str | None = None) -> dict[str, str]:
        text = (self.redirect_uri if redirect_uri is None else redirect_uri) + (secret or self.secret or "")
        return {"Authorization": f"Bearer {hashlib.sha1(text.encode()).hexdigest()}"}

    def basic(self, secret: str | None = None) -> dict[str, str]:
        pair = f"{self.client_id}:{secret or self.secret}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    def redeem(self, code: str, /, headers: dict[str, str] | None = None, **changes: Any) -> httpx.Response:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect_uri, **changes}
        data = {name: value for name, value in form.items() if value is not None}
        return self.http.post(TOKEN, data=data, headers=self.bearer() if headers is None else headers)

    def refresh(self, token: str, /, headers: dict[str, str] | None = None, **changes: Any) -> httpx.Response:
        form = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": self.redirect_uri, **changes}
        data = {name: value for name, value in form.items() if value is not None}
        return self.http.post(TOKEN, data=data, headers=self.bearer() if headers is None else headers)

    def userinfo(self, access_token: str) -> httpx.Response:
        return self.http.get(USERINFO, headers={"Authorization": f"Bearer {access_token}"})

    def revoke(self, token: str, **changes: Any) -> httpx.Response:
        form = {"client_id": self.client_id, "client_secret": self.secret, "refresh_token": token, **changes}
        return self.http.post(REVOKE, data={name: value for name, value in form.items() if value is not None})

    def tokens(self, browser: "Browser", **changes: str | None) -> dict[str, Any]:
        """Authorizes and redeems the code. Returns the token response."""
        answer = self.redeem(browser.code(self, **changes))
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()
        return data

    def claims(self, token: str) -> dict[str, Any]:
        """Returns the claims of a token, verified with the published keys. On a slow machine it may have expired."""
        key_id = pyjwt.get_unverified_header(token)["kid"]
        if key_id not in self._keys:
            published = pyjwt.PyJWKSet.from_dict(self.http.get("/proxy/oauth/keys").json())
            self._keys = {str(key.key_id): key for key in published.keys}
        claims: dict[str, Any] = pyjwt.decode(
            token, self._keys[key_id], algorithms=ALGORITHMS, options={"verify_aud": False, "verify_exp": False}
        )
        return claims


@dataclass
class Browser:
    """A browser that keeps cookies and does not follow redirects."""

    server: Server
    login: str
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = _new_client(self.server)

    def sign_in(self) -> "Browser":
        answer = self.submit(self.http.get("/login"), {"login": self.login, "password": PASSWORD}, form=0)
        assert answer.status_code == 303, answer.text
        return self

    def submit(self, page: httpx.Response, fields: dict[str, str], form: int = -1, **options: Any) -> httpx.Response:
        """Submits a form of a page, by default the last one that has the fields, with its hidden fields."""
        forms = re.findall(r'<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>', page.text, re.DOTALL)
        with_fields = [found for found in forms if all(f'name="{name}"' in found[1] for name in fields)]
        action, inside = (with_fields or forms)[form]
        hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', inside)
        data = {name: html.unescape(value) for name, value in hidden} | fields
        return self.http.post(html.unescape(action), data=data, **options)

    def authorize(self, site: Site, **changes: str | None) -> httpx.Response:
        return self.http.get(f"{AUTHORIZE}?{urlencode(site.query(**changes))}")

    def code(self, site: Site, **changes: str | None) -> str:
        answer = self.authorize(site, **changes)
        assert answer.status_code == 302, answer.text
        return query_of(answer)["code"]


def _new_client(server: Server) -> httpx.Client:
    client = server.client()
    _open.append(client)
    return client


def close_all() -> None:
    while _open:
        _open.pop().close()


def next_path_of(page: httpx.Response) -> str:
    """Returns the field ``next`` of the page: the path after the sign-in."""
    match = re.search(r'<input type="hidden" name="next" value="([^"]*)"', page.text)
    assert match
    return html.unescape(match[1])


def query_of(answer: httpx.Response) -> dict[str, str]:
    """Returns the parameters of a redirect, and checks that none is repeated."""
    pairs = parse_qsl(urlsplit(answer.headers["Location"]).query, keep_blank_values=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def new_site(server: Server, *, public: bool = False, **fields: Any) -> Site:
    client_id = f"site{next(_numbers)}"
    redirect_uri = fields.pop("redirect_uri", "https://game.example.com/cb")
    secret = None if public else fields.pop("client_secret", f"{client_id}-secret-0123456789")
    host = urlsplit(redirect_uri).hostname
    record = {"client_id": client_id, "name": f"Site {client_id}", "redirect_hosts": [host], **fields}
    server.save_accounts(clients=[record | ({"client_secret": secret} if secret else {})])
    return Site(server, client_id, secret, redirect_uri, fields.get("profile", "strict"))


def new_browser(server: Server, **fields: Any) -> Browser:
    login = fields.pop("login", f"oauth{next(_numbers)}@example.com")
    server.save_accounts(users=[{"login": login, "password": PASSWORD, "nick": "Ann", **fields}])
    return Browser(server, login)


def pkce() -> tuple[str, str]:
    """Returns a code verifier and its challenge."""
    verifier = base64.urlsafe_b64encode(hashlib.sha256(str(next(_numbers)).encode()).digest()).decode().rstrip("=")
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).decode().rstrip("=")


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Returns status and code of an OAuth error response, and checks that it has no other fields."""
    data = answer.json()
    assert set(data) == {"error", "error_description"}, data
    return answer.status_code, data["error"]
