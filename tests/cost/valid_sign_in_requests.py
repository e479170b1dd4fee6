"""Valid requests at the limits of those who sign in, and of OAuth clients."""

import base64
import itertools
import time
from collections.abc import Iterator
from typing import Any

import jwt as pyjwt

from sso.core.keys import public_jwk
from tests.cost.conftest import World
from tests.cost.large_records import largest_key
from tests.cost.valid_request import Options, ValidRequest, form, get, post
from tests.kit.oauth import PAR, TOKEN
from tests.kit.rsa_keys import rsa_key
from tests.perm.endpoints.conftest import FACTOR
from tests.perm.endpoints.tokens import user_jwt

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTING, PUSHING, SECRET = "cost-assertions", "cost-pushed", "a secret of this client"
REDIRECT_URI = "https://game.example.com/" + "a" * 900
NOBODY, PLAYER = "nobody", "player"
_numbers = itertools.count(1)


def sign_in_requests(world: World) -> Iterator[ValidRequest]:
    player = world.callers[PLAYER].user
    assert player is not None
    password = {"login": player.login, "password": "x" * 1024, "factor": "f" * 256, "jwt_public_key": largest_key().pem}
    yield post("login with the longest password", NOBODY, "/proxy/api/login", password, status=401)
    token = user_jwt(world.server, player.user_id, nick="n" * 11_000)
    assert len(token) > 15_000
    yield ValidRequest(
        "user JWT of 16 kB",
        PLAYER,
        "/api/permissions/user/info",
        lambda: {"json": {}, "headers": {"Authorization": f"Bearer {token}", "Factor": FACTOR}},
    )
    yield from _client_requests(world)
    yield get("set up an authenticator app", PLAYER, "/account/totp")
    yield form("export of personal data", PLAYER, "/account/export", dict)


def _client_requests(world: World) -> Iterator[ValidRequest]:
    keys = {"keys": [largest_key().jwk(f"key-{number}") for number in range(10)]}
    service = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": world.records.application_id}
    uris = [f"https://game.example.com/{number}" for number in range(1000)]
    world.server.apply(
        {
            "clients": [
                {"client_id": ASSERTING, "token_endpoint_auth_method": "private_key_jwt", "jwks": keys, **service},
                {
                    "client_id": PUSHING,
                    "client_secret": SECRET,
                    "profile": "oidc",
                    "redirect_uris": [*uris, REDIRECT_URI],
                },
            ]
        }
    )

    def assertion() -> Options:
        claims = {"iss": ASSERTING, "sub": ASSERTING, "aud": world.server.base_url, "jti": f"{next(_numbers):0256}"}
        signed = largest_key().sign({**claims, "exp": int(time.time()) + 60}, kid="key-9")
        fields = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": signed}
        return {"data": {"grant_type": "client_credentials", **fields}}

    yield ValidRequest("client assertion with the largest key", NOBODY, TOKEN, assertion)

    def pushed(key: Any, status: int) -> ValidRequest:
        def options() -> Options:
            basic = base64.b64encode(f"{PUSHING}:{SECRET}".encode()).decode()
            headers = {"Authorization": f"Basic {basic}", "DPoP": _proof(world, key)}
            fields = {"scope": "openid", "state": "s" * 4096, "nonce": "n" * 1024, "more": "m" * 24_000}
            return {
                "data": {"response_type": "code", "redirect_uri": REDIRECT_URI, **fields},
                "headers": headers,
            }

        return ValidRequest(
            f"pushed request, proof with {key.public_key().key_size} bits", NOBODY, PAR, options, status=status
        )

    yield pushed(rsa_key(bits=4096), 201)
    yield pushed(rsa_key(bits=4104), 400)  # larger keys are refused before they are used


def _proof(world: World, key: Any) -> str:
    jwk = {name: value for name, value in public_jwk(key.public_key(), "").items() if name in ("kty", "n", "e")}
    claims = {
        "htm": "POST",
        "htu": world.server.base_url + PAR,
        "iat": int(time.time()),
        "jti": f"{next(_numbers):0256}",
    }
    return pyjwt.encode(claims, key, "RS256", headers={"typ": "dpop+jwt", "jwk": jwk})
