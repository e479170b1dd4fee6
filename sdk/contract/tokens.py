"""Signs JWTs for scenarios of game servers: ``python -m sdk.contract.tokens KID`` with the claims as JSON on the input.

The keys under ``server/keys`` exist only for these scenarios. All three algorithms are deterministic: the same claims
give the same JWT.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sso.core.jwt import JWT, Signer
from sso.core.keys import PrivateKey, algorithm_of, load_private, public_jwk

KEYS = Path(__file__).parent / "server/keys"


def private_key(kid: str) -> PrivateKey:
    return load_private((KEYS / f"{kid}.pem").read_text())


def key_set(*kids: str) -> dict[str, Any]:
    """Returns the key set that a scripted service publishes."""
    return {"keys": [public_jwk(private_key(kid).public_key(), kid) for kid in kids]}


def sign(kid: str, claims: Mapping[str, Any], header_type: str = JWT, *, key: str = "") -> str:
    """Returns a JWT with this ``kid``, which is signed by the key of that name, or by another one."""
    private = private_key(key or kid)
    return Signer(kid, private, algorithm_of(private.public_key())).sign(claims, header_type)


if __name__ == "__main__":
    print(json.dumps({"jwt": sign(sys.argv[1], json.load(sys.stdin)), "key_set": key_set(sys.argv[1])}, indent=2))
