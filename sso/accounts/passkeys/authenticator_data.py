"""Checks the form and the size of what a passkey has signed, before a library reads it.

All functions raise ValueError. The ``webauthn`` library checks the contents.
"""

from sso.accounts.passkeys import cbor

MAX_ASSERTION_DATA = 1024  # bytes
MAX_ATTESTATION_OBJECT = 8 * 1024
HEAD = 37  # bytes: the hash of the relying party's id, the flags and the counter
_FLAGS_AT = 32
_AAGUID, _ID_LENGTH = 16, 2
_HAS_CREDENTIAL, _HAS_EXTENSIONS = 0x40, 0x80


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
