"""A key of a client, with which it makes DPoP proofs (RFC 9449)."""

import base64
import hashlib
import itertools
import time
from dataclasses import dataclass, field
from typing import Any

import jwt as pyjwt

from sso.core.ids import digest
from sso.core.keys import GENERATE, PrivateKey, public_jwk
from sso.oauth.tokens.dpop import jwk_thumbprint
from tests.kit.browser import query
from tests.kit.oauth import TOKEN, USERINFO, Site
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

_numbers = itertools.count(1)


@dataclass
class DpopKey:
    algorithm: str = "ES256"
    key: PrivateKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = rsa_key() if self.algorithm in ("RS256", "PS256") else GENERATE[self.algorithm]()

    @property
    def jwk(self) -> dict[str, Any]:
        jwk = public_jwk(self.key.public_key(), "")
        return {name: value for name, value in jwk.items() if name not in ("kid", "use", "alg")}

    @property
    def jkt(self) -> str:
        return jwk_thumbprint(self.key.public_key())

    def proof(
        self, site: Site, path: str = TOKEN, *, header: dict[str, Any] | None = None, key: Any = None, **changes: Any
    ) -> str:
        """Returns a proof for a POST to the path; None leaves a claim out."""
        claims = {
            "htm": "POST",
            "htu": site.server.base_url + path,
            "iat": int(time.time()),
            "jti": f"proof-{next(_numbers)}",
            **changes,
        }
        given = {name: value for name, value in claims.items() if value is not None}
        headers = {"typ": "dpop+jwt", "jwk": self.jwk, **(header or {})}
        signing_key = self.key if key is None else key
        return pyjwt.encode(given, signing_key, headers.pop("alg", self.algorithm), headers=headers)

    def headers(self, site: Site, path: str = TOKEN, **changes: Any) -> dict[str, str]:
        return {"DPoP": self.proof(site, path, **changes)}

    def at_userinfo(self, site: Site, access_token: str, **changes: Any) -> dict[str, str]:
        """Returns the headers of a GET of userinfo."""
        proof = self.proof(site, USERINFO, **{"htm": "GET", "ath": ath(access_token)} | changes)
        return {"Authorization": f"DPoP {access_token}", "DPoP": proof}


def ath(access_token: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(access_token.encode()).digest()).decode().rstrip("=")


def is_stored(server: Server, key: DpopKey, headers: dict[str, str]) -> bool:
    """Whether the service has stored that the proof was used."""
    jti = pyjwt.decode(headers["DPoP"], options={"verify_signature": False})["jti"]
    sql = "SELECT FROM oauth_used_jtis WHERE digest = $1"
    return bool(query(server, sql, digest(f"dpop {key.jkt} {jti}")))
