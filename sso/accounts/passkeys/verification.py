"""Verifies what passkeys have signed, with the ``webauthn`` library, in a thread that is bounded and fair.

The library takes 0.3 s to import, so it is imported with the first passkey. It parses data of strangers and has no
common base class for the errors of its own parsers: whatever it raises means that the answer is not accepted. It gets
only data whose form and size were checked, because its parser of CBOR takes long for some.
"""

from msgspec import Struct

from sso.accounts.passkeys import cbor
from sso.accounts.passkeys.credential import InvalidPasskey, PasskeyAnswer
from sso.accounts.passkeys.public_key import ALGORITHMS, used_members
from sso.accounts.passkeys.relying_party import RelyingParty
from sso.core.fair_thread import FairThread
from sso.core.net import Address

MAX_ASSERTION_DATA = 1024  # bytes
MAX_ATTESTATION_OBJECT = 8 * 1024
HEAD = 37  # bytes: the hash of the relying party's id, the flags and the counter
_FLAGS_AT = 32
_AAGUID, _ID_LENGTH = 16, 2
_HAS_CREDENTIAL, _HAS_EXTENSIONS = 0x40, 0x80

MAX_WAITING_PER_CLIENT = 8


def check_assertion_data(data: bytes) -> None:
    """An assertion contains no credential, and may contain extensions."""
    if not HEAD <= len(data) <= MAX_ASSERTION_DATA:
        raise ValueError(f"authenticatorData: expected {HEAD} to {MAX_ASSERTION_DATA} bytes")
    if data[_FLAGS_AT] & _HAS_CREDENTIAL:
        raise ValueError("authenticatorData: expected no credential")
    _check_extensions(data, HEAD)


def check_attestation_object(encoded: bytes) -> None:
    """The page asks for no attestation, so the object says that there is none."""
    if len(encoded) > MAX_ATTESTATION_OBJECT:
        raise ValueError(f"attestationObject: expected at most {MAX_ATTESTATION_OBJECT} bytes")
    members = cbor.decode(encoded)
    if not isinstance(members, dict) or members.keys() != {"fmt", "attStmt", "authData"}:
        raise ValueError("attestationObject: expected fmt, attStmt and authData")
    if members["fmt"] != "none" or members["attStmt"] != {}:
        raise ValueError("attestationObject: expected no attestation")
    data = members["authData"]
    if not isinstance(data, bytes) or len(data) < HEAD or not data[_FLAGS_AT] & _HAS_CREDENTIAL:
        raise ValueError("authData: expected a credential")
    _check_extensions(data, _end_of_credential(data))


def _end_of_credential(data: bytes) -> int:
    id_start = HEAD + _AAGUID + _ID_LENGTH
    id_length = int.from_bytes(data[id_start - _ID_LENGTH : id_start])
    _key, end = cbor.decode_first(data, id_start + id_length)
    return end


def _check_extensions(data: bytes, start: int) -> None:
    if data[_FLAGS_AT] & _HAS_EXTENSIONS:
        cbor.decode(data[start:])
    elif len(data) > start:
        raise ValueError("authenticatorData: there are bytes after its end")


class NewCredential(Struct, frozen=True):
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
    from webauthn.helpers import bytes_to_base64url, encode_cbor
    from webauthn.helpers.cose import COSEAlgorithmIdentifier
    from webauthn.helpers.structs import AuthenticatorAttestationResponse, RegistrationCredential

    try:
        answer.check_page()
        attestation = answer.response_bytes("attestationObject")
        check_attestation_object(attestation)
        verified = verify_registration_response(
            credential=RegistrationCredential(
                id=bytes_to_base64url(answer.credential_id),
                raw_id=answer.credential_id,
                response=AuthenticatorAttestationResponse(answer.client_data_json, attestation),
            ),
            expected_challenge=answer.challenge,
            expected_rp_id=relying_party.id,
            expected_origin=relying_party.origin,
            require_user_verification=True,
            supported_pub_key_algs=[COSEAlgorithmIdentifier(number) for number in ALGORITHMS],
        )
        public_key = encode_cbor(used_members(verified.credential_public_key))
    except Exception:
        raise InvalidPasskey from None
    if verified.credential_id != answer.credential_id:
        raise InvalidPasskey
    return NewCredential(verified.credential_id, public_key, verified.sign_count)


def _verify_assertion(
    relying_party: RelyingParty, answer: PasskeyAnswer, public_key: bytes, user_verification: bool
) -> int:
    from webauthn import verify_authentication_response
    from webauthn.helpers import bytes_to_base64url, encode_cbor
    from webauthn.helpers.structs import AuthenticationCredential, AuthenticatorAssertionResponse

    try:
        answer.check_page()
        data = answer.response_bytes("authenticatorData")
        check_assertion_data(data)
        verified = verify_authentication_response(
            credential=AuthenticationCredential(
                id=bytes_to_base64url(answer.credential_id),
                raw_id=answer.credential_id,
                response=AuthenticatorAssertionResponse(
                    answer.client_data_json, data, answer.response_bytes("signature")
                ),
            ),
            expected_challenge=answer.challenge,
            expected_rp_id=relying_party.id,
            expected_origin=relying_party.origin,
            credential_public_key=encode_cbor(used_members(public_key)),
            credential_current_sign_count=0,  # the statement that records the use compares the counters
            require_user_verification=user_verification,
        )
    except Exception:
        raise InvalidPasskey from None
    return verified.new_sign_count
