"""Verification of a client's evidence."""

import base64
import hashlib
from typing import Any

import pytest

from sso.core.keys import public_der
from sso.core.net import parse_address
from sso.core.signature_verification import SignatureVerificationPool
from sso.gsid.client_proof import ClientEvidence, ProofFailure, verify_proof
from sso.gsid.model import GameSessionData
from tests.kit.game import public_text, sign
from tests.kit.rsa_keys import rsa_key

URL = "https://sso.example.com/proxy/api/gameSession/getGsidResult?Location="
SECRET, BODY = "S" * 43, b'{"gsid": "x"}'
HOME, AWAY = "203.0.113.5", "198.51.100.7"


def session(*, key: bool = False) -> GameSessionData:
    return GameSessionData(
        gsid="x",
        location=hashlib.sha256(SECRET.encode()).digest(),
        match="amber acorn",
        address=HOME,
        public_key=public_der(rsa_key().public_key()) if key else None,
        distr="",
        factor="",
        jwt_public_key="",
        app_id=0,
        gapp_id=0,
        nojwt=False,
        short_token=False,
        fixed_ips=(),
        with_meta=False,
        with_email=False,
        meta_given=False,
        bound_apps=None,
        started=0,
    )


async def verify(
    address: str, *, key: bool = False, address_suffices: bool = False, **pieces: Any
) -> ProofFailure | None:
    evidence = ClientEvidence(parse_address(address), signed_bytes=BODY, **pieces)
    return await verify_proof(
        session(key=key), evidence, URL, SignatureVerificationPool(), address_suffices=address_suffices
    )


async def test_registering_address_suffices_unless_the_session_has_a_key() -> None:
    assert await verify(HOME) is None
    assert await verify(AWAY) == ProofFailure("wrong address", HOME, AWAY)
    assert await verify(HOME, key=True) is not None


async def test_registering_address_suffices_for_the_socket_of_a_session_with_a_key() -> None:
    assert await verify(HOME, key=True, address_suffices=True) is None
    assert await verify(AWAY, key=True, address_suffices=True) == ProofFailure("wrong address", HOME, AWAY)


@pytest.mark.parametrize("key", [False, True])
async def test_location_secret_or_complete_url_suffices_from_any_address(key: bool) -> None:
    for location in (SECRET, URL + SECRET):
        assert await verify(AWAY, key=key, location=location) is None
    for location in ("", URL, SECRET[:-1], SECRET + " ", URL + URL + SECRET, URL.replace("https", "http") + SECRET):
        failure = await verify(HOME, key=key, location=location)
        assert failure is not None
        assert failure.reason == "wrong location"


async def test_signature_suffices_from_any_address_if_the_session_has_a_key() -> None:
    good = sign(rsa_key(), BODY)
    assert await verify(AWAY, key=True, signature=good) is None
    assert await verify(HOME, signature=good) == ProofFailure(
        "signature without a registered key", "no key", "a signature"
    )


async def test_invalid_evidence_fails_even_beside_valid_evidence() -> None:
    good, bad = sign(rsa_key(), BODY), sign(rsa_key(1), BODY)
    other = public_text(rsa_key(1))
    invalid: tuple[dict[str, Any], ...] = (
        {"location": SECRET, "signature": bad},
        {"location": "x", "signature": good},
        {"signature": good, "public_key": other},
        {"signature": good, "public_key": "garbage"},
        {"location": SECRET, "public_key": other},
    )
    for pieces in invalid:
        assert await verify(HOME, key=True, **pieces) is not None, pieces
    assert await verify(AWAY, key=True, location=SECRET, signature=good, public_key=public_text(rsa_key())) is None


async def test_public_key_alone_proves_nothing() -> None:
    key = public_text(rsa_key())
    assert await verify(HOME, public_key=key) is not None
    assert await verify(HOME, key=True, public_key=key) is not None


async def test_failure_contains_no_secret() -> None:
    for failure in (await verify(AWAY, location="T" * 43), await verify(HOME, location=SECRET + "x")):
        assert failure is not None
        assert failure.expected.startswith("sha256 ")
        assert failure.found.startswith("sha256 ")
        assert len(failure.expected) < 25
        assert SECRET not in str(failure)
        assert "T" * 43 not in str(failure)
    assert SECRET not in repr(ClientEvidence(parse_address(HOME), SECRET, SECRET, SECRET, SECRET.encode()))
    assert base64.b64encode(session(key=True).location).decode() not in repr(session(key=True))
