"""A client of the profile fapi2, which does everything right unless a test says otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import httpx

from sso.core.keys import public_jwk
from tests.kit.client_assertions import KEYS, assertion, fields
from tests.kit.dpop import DpopKey
from tests.kit.oauth import AUTHORIZE, PAR, TOKEN, USERINFO, Browser, Site, new_site, pkce, query_of
from tests.kit.server import Server

_KEYS = [public_jwk(key.public_key(), f"key-{algorithm}") for algorithm, key in KEYS.items()]
# Without its algorithm, the RSA key can be used with RS256 and PS256.
JWKS = {"keys": [{name: value for name, value in jwk.items() if name != "alg"} for jwk in _KEYS]}
NOTHING: Mapping[str, Any] = MappingProxyType({})
REDIRECT_URI = "https://game.example.com/cb"


@dataclass
class FapiClient:
    site: Site
    key: DpopKey = field(default_factory=DpopKey)
    nonce: str | None = None  # the newest one of the service

    def send(
        self,
        path: str,
        form: dict[str, Any],
        key: DpopKey | None = None,
        signed: Mapping[str, Any] = NOTHING,
        **changes: Any,
    ) -> httpx.Response:
        """Posts a form with an assertion and a proof. Sends it again if the service demands a nonce.

        ``signed`` changes the assertion, ``changes`` the proof.
        """
        key = key or self.key
        for _ in range(2):
            headers = key.headers(self.site, path, **{"nonce": self.nonce, **changes})
            answer = self.site.http.post(path, data={**fields(assertion(self.site, **signed)), **form}, headers=headers)
            self.nonce = answer.headers.get("DPoP-Nonce", self.nonce)
            if answer.json().get("error") != "use_dpop_nonce" or "nonce" in changes:
                break
        return answer

    def push(
        self,
        challenge: str | None = None,
        key: DpopKey | None = None,
        signed: Mapping[str, Any] = NOTHING,
        **changes: Any,
    ) -> httpx.Response:
        pair = {"code_challenge": challenge or pkce()[1], "code_challenge_method": "S256"}
        return self.send(PAR, self.site.query(**{**pair, **changes}), key, signed)

    def push_without_proof(self, challenge: str, **changes: Any) -> httpx.Response:
        pair = {"code_challenge": challenge, "code_challenge_method": "S256"}
        data = fields(assertion(self.site), **self.site.query(**{**pair, **changes}))
        return self.site.http.post(PAR, data=data)

    def follow(self, browser: Browser, pushed: httpx.Response, **beside: str) -> httpx.Response:
        """Opens the authorization endpoint with the request URI, and perhaps with parameters beside it."""
        assert pushed.status_code == 201, pushed.text
        parameters = {"client_id": self.site.client_id, "request_uri": pushed.json()["request_uri"], **beside}
        return browser.http.get(AUTHORIZE, params=parameters)

    def code(self, browser: Browser, **changes: Any) -> dict[str, str]:
        """Returns the fields of a token request that redeems a new code."""
        verifier, challenge = pkce()
        code = query_of(self.follow(browser, self.push(challenge, **changes)))["code"]
        return self.redemption(code, verifier)

    def redemption(self, code: str, verifier: str) -> dict[str, str]:
        return {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.site.redirect_uri,
            "code_verifier": verifier,
        }

    def tokens(self, browser: Browser, **changes: Any) -> dict[str, Any]:
        answer = self.send(TOKEN, self.code(browser, **changes))
        assert answer.status_code == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    def refresh(self, refresh_token: str, key: DpopKey | None = None) -> httpx.Response:
        return self.send(TOKEN, {"grant_type": "refresh_token", "refresh_token": refresh_token}, key)

    def userinfo(self, access_token: str, key: DpopKey | None = None, **changes: Any) -> httpx.Response:
        headers = (key or self.key).at_userinfo(self.site, access_token, **{"nonce": self.nonce, **changes})
        return self.site.http.get(USERINFO, headers=headers)


def new_fapi_client(server: Server, **changes: Any) -> FapiClient:
    record = {"jwks": JWKS, "redirect_hosts": [], "redirect_uris": [REDIRECT_URI], "profile": "fapi2", **changes}
    return FapiClient(new_site(server, public=True, **record))
