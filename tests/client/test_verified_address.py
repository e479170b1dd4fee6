"""A user JWT that is bound to networks is refused elsewhere, if the verifier knows where the request comes from."""

import json
import time
from typing import Any

import anyio
import httpx
import pytest

from sso.client import AsyncPlayerVerifier, PlayerRefused, PlayerVerifier
from sso.core.jwt import Signer
from sso.core.keys import GENERATE, public_jwk

ISSUER = "https://sso.example.com"
KEY = GENERATE["EdDSA"]()
KEY_SET = json.dumps({"keys": [public_jwk(KEY.public_key(), "key-1")]}).encode()
NETWORKS = ["203.0.113.0/24", "2001:db8::/64"]
INSIDE = ("203.0.113.9", "::ffff:203.0.113.9", "2001:db8::1")
OUTSIDE = ("203.0.114.9", "::ffff:203.0.114.9", "2001:db8:1::1", "", "localhost")


def jwt_with(**claims: Any) -> str:
    now = int(time.time())
    usual = {"typ": "user_token", "iss": ISSUER, "sub": "1", "uid": "1", "iat": now, "exp": now + 3600}
    return Signer("key-1", KEY, "EdDSA").sign(usual | claims)


def outcome(jwt: str, address: str | None) -> str:
    """Returns "verified" or the reason of the refusal; both verifiers agree."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=httpx.ByteStream(KEY_SET)))
    verifier = PlayerVerifier(ISSUER, transport=transport)

    async def verify() -> None:
        asynchronous = AsyncPlayerVerifier(ISSUER, transport=transport)
        await asynchronous.verify(jwt, address=address)

    outcomes = []
    for call in (lambda: verifier.verify(jwt, address=address), lambda: anyio.run(verify)):
        try:
            call()
            outcomes.append("verified")
        except PlayerRefused as refused:
            outcomes.append(refused.reason)
    assert len(set(outcomes)) == 1, outcomes
    return outcomes[0]


@pytest.mark.parametrize("address", INSIDE)
def test_player_within_the_networks_is_verified(address: str) -> None:
    assert outcome(jwt_with(ips=NETWORKS), address) == "verified"


@pytest.mark.parametrize("address", OUTSIDE)
def test_player_elsewhere_is_refused(address: str) -> None:
    assert outcome(jwt_with(ips=NETWORKS), address) == "address"
    assert outcome(jwt_with(ips=[]), address) == "address"


def test_networks_that_cannot_be_read_contain_no_address() -> None:
    assert {outcome(jwt_with(ips=bad), INSIDE[0]) for bad in ("203.0.113.0/24", [7], ["x"], None)} == {"address"}


def test_jwt_without_networks_and_verifier_without_an_address_are_not_restricted() -> None:
    assert outcome(jwt_with(), OUTSIDE[0]) == "verified"
    assert outcome(jwt_with(ips=NETWORKS), None) == "verified"
