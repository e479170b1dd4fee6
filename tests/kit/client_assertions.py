"""Assertions of clients that authenticate with private_key_jwt."""

import itertools
import time
from typing import Any

import jwt as pyjwt

from sso.core.keys import GENERATE, PrivateKey
from tests.kit.oauth import Site
from tests.kit.rsa_keys import rsa_key

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


KEYS: dict[str, PrivateKey] = {"RS256": rsa_key(), "ES256": GENERATE["ES256"](), "EdDSA": GENERATE["EdDSA"]()}


_numbers = itertools.count(1)


def assertion(site: Site, algorithm: str = "ES256", *, key: Any = None, kid: str | None = "", **changes: Any) -> str:
    """Returns a valid client assertion with some claims changed; None leaves a claim out."""
    claims = {
        "iss": site.client_id,
        "sub": site.client_id,
        "aud": site.server.base_url,
        "jti": f"jti-{next(_numbers)}",
        "exp": int(time.time()) + 60,
        "iat": int(time.time()),
        **changes,
    }
    headers = {} if kid is None else {"kid": kid or f"key-{algorithm}"}
    given = {name: value for name, value in claims.items() if value is not None}
    return pyjwt.encode(given, key or KEYS[algorithm], algorithm, headers=headers)


def fields(assertion: str, /, **more: str) -> dict[str, str]:
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion, **more}
