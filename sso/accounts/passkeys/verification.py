"""Verifies what passkeys have signed, with the ``webauthn`` library, in a thread that is bounded and fair.

The library takes 0.3 s to import, so it is imported with the first passkey. It parses data of strangers and has no
common base class for the errors of its own parsers: whatever it raises means that the answer is not accepted.
"""

from dataclasses import dataclass

from sso.accounts.passkeys.credential import InvalidPasskey, PasskeyAnswer
from sso.accounts.passkeys.relying_party import RelyingParty
from sso.core.fair_thread import FairThread
from sso.core.net import Address

ALGORITHMS = (-7, -257, -8)  # ES256, RS256 and EdDSA, by their COSE numbers
MAX_WAITING_PER_CLIENT = 8
MIN_RSA_BYTES, MAX_RSA_BYTES, MAX_EXPONENT_BYTES = 256, 1024, 4


@dataclass(frozen=True)
class NewCredential:
    credential_id: bytes
    public_key: bytes
    sign_count: int


class PasskeyVerifier:
    def __init__(self, relying_party: RelyingParty) -> None:
        self._relying_party = relying_party
        self._thread = FairThread(MAX_WAITING_PER_CLIENT)

    async def verify_registration(self, client: Address, answer: PasskeyAnswer) -> NewCredential:
        """The caller has checked the challenge. Raises InvalidPasskey, or ServerBusy if too many calls are waiting."""
        return await self._thread.run(client, _verify_registration, self._relying_party, answer)

    async def verify_assertion(
        self, client: Address, answer: PasskeyAnswer, public_key: bytes, *, user_verification: bool
    ) -> int:
        """Returns the signature counter. The caller has checked the challenge, and checks the counter."""
        return await self._thread.run(
            client, _verify_assertion, self._relying_party, answer, public_key, user_verification
        )


def _verify_registration(relying_party: RelyingParty, answer: PasskeyAnswer) -> NewCredential:
    from webauthn import verify_registration_response
    from webauthn.helpers.cose import COSEAlgorithmIdentifier

    try:
        verified = verify_registration_response(
            credential=answer.text,
            expected_challenge=answer.challenge,
            expected_rp_id=relying_party.id,
            expected_origin=relying_party.origin,
            require_user_verification=True,
            supported_pub_key_algs=[COSEAlgorithmIdentifier(number) for number in ALGORITHMS],
        )
        _check_key_size(verified.credential_public_key)
    except Exception:
        raise InvalidPasskey from None
    return NewCredential(verified.credential_id, verified.credential_public_key, verified.sign_count)


def _verify_assertion(
    relying_party: RelyingParty, answer: PasskeyAnswer, public_key: bytes, user_verification: bool
) -> int:
    from webauthn import verify_authentication_response

    try:
        verified = verify_authentication_response(
            credential=answer.text,
            expected_challenge=answer.challenge,
            expected_rp_id=relying_party.id,
            expected_origin=relying_party.origin,
            credential_public_key=public_key,
            credential_current_sign_count=0,  # the statement that records the use compares the counters
            require_user_verification=user_verification,
        )
    except Exception:
        raise InvalidPasskey from None
    return verified.new_sign_count


def _check_key_size(public_key: bytes) -> None:
    """Raises InvalidPasskey for an RSA key that is too small, or so large that verifying takes long."""
    from webauthn.helpers.decode_credential_public_key import DecodedRSAPublicKey, decode_credential_public_key

    key = decode_credential_public_key(public_key)
    if isinstance(key, DecodedRSAPublicKey):
        size = len(key.n.lstrip(b"\0"))
        if not MIN_RSA_BYTES <= size <= MAX_RSA_BYTES or len(key.e.lstrip(b"\0")) > MAX_EXPONENT_BYTES:
            raise InvalidPasskey
