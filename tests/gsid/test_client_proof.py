"""The rules of binding, without a server."""

import base64
import hashlib
from typing import Any

import pytest

from sso.core.keys import public_der
from sso.core.net import parse_address
from sso.core.verification import VerificationPool
from sso.gsid.client_proof import ClientEvidence, ProofFailure, verify_proof
from sso.gsid.model import GameSessionData
from tests.kit.game import public_text, rsa_key, sign

URL = "https://sso.example.com/proxy/api/gameSession/getGsidResult?Location="
SECRET, BODY = "S" * 43, b'{"gsid": "x"}'
HOME, AWAY = "203.0.113.5", "198.51.100.7"


def facts(*, key: bool = False) -> GameSessionData:
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


async def judge(address: str, *, key: bool = False, address_suffices: bool = False, **said: Any) -> ProofFailure | None:
    evidence = ClientEvidence(parse_address(address), signed_bytes=BODY, **said)
    return await verify_proof(facts(key=key), evidence, URL, VerificationPool(), address_suffices=address_suffices)


async def test_the_creating_address_suffices_unless_a_key_was_registered() -> None:
    assert await judge(HOME) is None
    assert await judge(AWAY) == ProofFailure("wrong address", HOME, AWAY)
    assert await judge(HOME, key=True) is not None


async def test_a_socket_may_come_from_the_creating_address_also_with_a_key() -> None:
    assert await judge(HOME, key=True, address_suffices=True) is None
    assert await judge(AWAY, key=True, address_suffices=True) == ProofFailure("wrong address", HOME, AWAY)


@pytest.mark.parametrize("key", [False, True])
async def test_the_secret_or_the_complete_url_suffices_from_anywhere(key: bool) -> None:
    for said in (SECRET, URL + SECRET):
        assert await judge(AWAY, key=key, location=said) is None
    for said in ("", URL, SECRET[:-1], SECRET + " ", URL + URL + SECRET, URL.replace("https", "http") + SECRET):
        wrong = await judge(HOME, key=key, location=said)
        assert wrong is not None
        assert wrong.reason == "wrong location"


async def test_a_signature_suffices_from_anywhere_if_a_key_was_registered() -> None:
    good = sign(rsa_key(), BODY)
    assert await judge(AWAY, key=True, signature=good) is None
    assert await judge(HOME, signature=good) == ProofFailure(
        "signature without a registered key", "no key", "a signature"
    )


async def test_wrong_evidence_is_refused_even_beside_right_one() -> None:
    good, bad = sign(rsa_key(), BODY), sign(rsa_key(1), BODY)
    other = public_text(rsa_key(1))
    wrong: tuple[dict[str, Any], ...] = (
        {"location": SECRET, "signature": bad},
        {"location": "x", "signature": good},
        {"signature": good, "public_key": other},
        {"signature": good, "public_key": "garbage"},
        {"location": SECRET, "public_key": other},
    )
    for said in wrong:
        assert await judge(HOME, key=True, **said) is not None, said
    assert await judge(AWAY, key=True, location=SECRET, signature=good, public_key=public_text(rsa_key())) is None


async def test_a_key_in_a_later_request_is_the_registered_one_or_refused() -> None:
    key = public_text(rsa_key())
    assert await judge(HOME, public_key=key) is not None
    assert await judge(HOME, key=True, public_key=key) is not None  # a key is no proof of itself


async def test_what_an_operator_is_told_holds_no_secret() -> None:
    for wrong in (await judge(AWAY, location="T" * 43), await judge(HOME, location=SECRET + "x")):
        assert wrong is not None
        assert wrong.expected.startswith("sha256 ")
        assert wrong.found.startswith("sha256 ")
        assert len(wrong.expected) < 25
        assert SECRET not in str(wrong)
        assert "T" * 43 not in str(wrong)
    assert SECRET not in repr(ClientEvidence(parse_address(HOME), SECRET, SECRET, SECRET, SECRET.encode()))
    assert base64.b64encode(facts(key=True).location).decode() not in repr(facts(key=True))
