"""The cache of verified signatures."""

import pytest

from sso.core.jwt import InvalidToken, Signer, Verifier
from sso.core.keys import GENERATE, key_id
from sso.core.verified_signatures import MAX_TOKEN_LENGTH, VerifiedSignatures

NOW = 1_700_000_000
KEY, OTHER = GENERATE["EdDSA"](), GENERATE["EdDSA"]()
SIGNER = Signer(key_id(KEY.public_key()), KEY, "EdDSA")


def token(**claims: object) -> str:
    return SIGNER.sign({"typ": "t", "iat": NOW, "exp": NOW + 60, **claims})


def verifier(verified: VerifiedSignatures) -> Verifier:
    return Verifier(typ="t", verified=verified)


def test_cached_claims_are_those_of_the_token_and_cannot_be_changed() -> None:
    verified = VerifiedSignatures()
    text = token(sub="1")
    for _ in range(3):
        claims = verifier(verified).verify(text, lambda _: KEY.public_key(), NOW)
        assert claims["sub"] == "1"
        claims["sub"] = "2"
    assert len(verified) == 1


def test_times_are_checked_although_the_signature_is_cached() -> None:
    verified, text = VerifiedSignatures(), token()
    verifier(verified).verify(text, lambda _: KEY.public_key(), NOW)
    with pytest.raises(InvalidToken):
        verifier(verified).verify(text, lambda _: KEY.public_key(), NOW + 60)


def test_a_cached_signature_is_not_valid_for_another_key_or_without_a_key() -> None:
    verified, text = VerifiedSignatures(), token()
    verifier(verified).verify(text, lambda _: KEY.public_key(), NOW)
    for key in (OTHER.public_key(), None):
        with pytest.raises(InvalidToken):
            verifier(verified).verify(text, lambda _, key=key: key, NOW)  # type: ignore[misc]


def test_another_signature_of_the_same_claims_is_not_valid() -> None:
    verified, text = VerifiedSignatures(), token()
    verifier(verified).verify(text, lambda _: KEY.public_key(), NOW)
    head, claims, signature = text.split(".")
    forged = f"{head}.{claims}.{'A' + signature[1:] if signature[0] != 'A' else 'B' + signature[1:]}"
    for _ in range(2):
        with pytest.raises(InvalidToken):
            verifier(verified).verify(forged, lambda _: KEY.public_key(), NOW)
    assert len(verified) == 1


def test_number_and_length_of_cached_tokens_are_limited() -> None:
    verified = VerifiedSignatures(max_tokens=3)
    for number in range(10):
        verifier(verified).verify(token(sub=str(number)), lambda _: KEY.public_key(), NOW)
    assert len(verified) == 3
    verifier(verified).verify(token(sub="x" * MAX_TOKEN_LENGTH), lambda _: KEY.public_key(), NOW)
    assert len(verified) == 3
