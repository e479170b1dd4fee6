"""A relying party that knows the discovery document only, as the conformance suite acts."""

import html
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import jwt as pyjwt

from tests.kit.builders import PASSWORD
from tests.kit.oauth import Browser, Site

NONCE, STATE = "n-0S6_WzA2Mj", "af0ifjsldkj"


@dataclass
class RelyingParty:
    site: Site
    browser: Browser
    mode: str = "default"
    metadata: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.metadata = self.site.http.get("/.well-known/openid-configuration").json()

    def parameters(self, **changes: str | None) -> dict[str, str]:
        mode = None if self.mode == "default" else self.mode
        return self.site.query(**{"scope": "openid", "state": STATE, "nonce": NONCE, "response_mode": mode, **changes})

    def authorize(self, **changes: str | None) -> httpx.Response:
        """Sends the authorization request by GET."""
        return self.browser.http.get(
            f"{self.metadata['authorization_endpoint']}?{urlencode(self.parameters(**changes))}"
        )

    def sign_in(self, page: httpx.Response) -> httpx.Response:
        """Fills in the sign-in form and returns the last page of the service, or its redirect to the client."""
        assert 'name="password"' in page.text, page.text
        answer = self.browser.submit(page, {"login": self.browser.login, "password": PASSWORD}, form=0)
        assert answer.status_code == 303, answer.text
        if answer.headers["Location"].startswith("/"):
            answer = self.browser.http.get(answer.headers["Location"])
        return answer

    def answer(self, response: httpx.Response) -> dict[str, str]:
        """Returns the parameters that the client receives, by the requested response mode."""
        if self.mode == "default":
            assert response.status_code in (302, 303), response.text
            location = response.headers["Location"]
            assert location.startswith(self.site.redirect_uri)
            return dict(parse_qsl(urlsplit(location).query))
        assert response.status_code == 200
        form = re.search(
            r'<form id="form-post"[^>]*method="post" action="([^"]*)"[^>]*>(.*?)</form>', response.text, re.S
        )
        assert form, response.text
        assert html.unescape(form[1]) == self.site.redirect_uri
        assert "/static/form-post.js" in response.text
        fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form[2])
        return {name: html.unescape(value) for name, value in fields}

    def code(self, response: httpx.Response) -> str:
        answer = self.answer(response)
        assert answer["state"] == STATE
        return answer["code"]

    def redeem(self, code: str, **changes: Any) -> httpx.Response:
        return self.site.redeem(code, headers=self.site.basic(), **changes)

    def tokens(self, **changes: str | None) -> dict[str, Any]:
        """Runs the whole flow for a user who is signed in, and checks the ID token."""
        return self.tokens_of(self.code(self.authorize(**changes)), nonce=changes.get("nonce", NONCE))

    def tokens_of(self, code: str, nonce: str | None = NONCE) -> dict[str, Any]:
        answer = self.redeem(code)
        assert answer.status_code == 200, answer.text
        assert answer.headers["Cache-Control"] == "no-store"
        tokens: dict[str, Any] = answer.json()
        assert tokens["token_type"] == "Bearer"
        assert self.claims(tokens["id_token"]).get("nonce") == nonce
        return tokens

    def claims(self, id_token: str) -> dict[str, Any]:
        """Returns the claims of an ID token after the checks of OpenID Connect Core section 3.1.3.7."""
        header = pyjwt.get_unverified_header(id_token)
        assert header["alg"] in self.metadata["id_token_signing_alg_values_supported"]
        keys = pyjwt.PyJWKSet.from_dict(self.site.http.get(self.metadata["jwks_uri"]).json())
        claims: dict[str, Any] = pyjwt.decode(
            id_token,
            keys[header["kid"]],
            algorithms=[header["alg"]],
            audience=self.site.client_id,
            issuer=self.metadata["issuer"],
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
        assert claims.get("azp", self.site.client_id) == self.site.client_id
        assert len(claims["sub"]) <= 255
        return claims

    def userinfo(self, access_token: str, method: str = "GET") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {access_token}"}
        answer = self.site.http.request(method, self.metadata["userinfo_endpoint"], headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Type"].startswith("application/json")
        data: dict[str, Any] = answer.json()
        return data
