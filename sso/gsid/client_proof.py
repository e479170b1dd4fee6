"""Verification of the evidence that a client owns its game session (§4.3): pure rules, without a store or a request.

Evidence is an address, the secret of the Location header, or a signature. One valid piece is enough; an invalid piece
is a violation, even beside a valid one.
"""

import hashlib
import hmac

from msgspec import Struct

from sso.core.hidden_fields import RecordWithHiddenFields
from sso.core.ids import digest
from sso.core.keys import UnusableKey, load_rsa_der, load_rsa_public, public_der, verify_rsa_signature
from sso.core.net import Address
from sso.core.signature_verification import SignatureVerificationPool
from sso.gsid.model import GameSessionData


class ClientEvidence(RecordWithHiddenFields, frozen=True):
    """The evidence of one request: at most one piece of each kind, and every piece must be valid."""

    hidden_fields = frozenset({"location", "signature", "public_key", "signed_bytes"})

    address: Address
    location: str | None = None
    signature: str | None = None
    public_key: str | None = None
    signed_bytes: bytes = b""


class ProofFailure(Struct, frozen=True):
    """The reason of a violation and both values, for operators only. Secrets appear as digest prefixes."""

    reason: str
    expected: str = ""
    found: str = ""


async def verify_proof(
    session: GameSessionData,
    evidence: ClientEvidence,
    location_url: str,
    pool: SignatureVerificationPool,
    *,
    address_suffices: bool = False,
) -> ProofFailure | None:
    """Returns None if the evidence is valid for the session, otherwise the failure.

    With ``address_suffices`` the address is enough even for a session with a key; the WebSocket allows that.
    ``PollStore.start`` applies the same rule in SQL to polls without any evidence but their address.
    """
    if evidence.public_key is not None and (failure := _verify_key(session.public_key, evidence.public_key)):
        return failure
    if evidence.location is not None:
        location = digest(evidence.location.removeprefix(location_url))
        if not hmac.compare_digest(location, session.location):
            return ProofFailure("wrong location", _fingerprint(session.location), _fingerprint(location))
    if evidence.signature is not None:
        return await _verify_signature(session.public_key, evidence, evidence.signature, pool)
    if evidence.location is not None:
        return None
    if session.public_key is not None and not address_suffices:
        return ProofFailure(
            "the session has a key, but the request has neither signature nor location", "a signature", "none"
        )
    if str(evidence.address) != session.address:
        return ProofFailure("wrong address", session.address, str(evidence.address))
    return None


def _verify_key(registered: bytes | None, text: str) -> ProofFailure | None:
    try:
        der = public_der(load_rsa_public(text))
    except UnusableKey as error:
        return ProofFailure("unusable public key", _key_fingerprint(registered), str(error))
    if der != registered:
        return ProofFailure("wrong public key", _key_fingerprint(registered), _key_fingerprint(der))
    return None


async def _verify_signature(
    registered: bytes | None, evidence: ClientEvidence, signature: str, pool: SignatureVerificationPool
) -> ProofFailure | None:
    if registered is None:
        return ProofFailure("signature without a registered key", "no key", "a signature")
    try:
        key = load_rsa_der(registered)
    except UnusableKey as error:
        return ProofFailure("the registered key is unusable", "a key within the limits", str(error))
    signed_bytes = evidence.signed_bytes
    if not await pool.run(evidence.address, key, verify_rsa_signature, key, signature, signed_bytes):
        return ProofFailure(
            "wrong signature",
            f"by key {_key_fingerprint(registered)}",
            f"{len(signed_bytes)} bytes with another signature",
        )
    return None


def _key_fingerprint(der: bytes | None) -> str:
    return _fingerprint(hashlib.sha256(der).digest()) if der else "no key"


def _fingerprint(hashed: bytes) -> str:
    return f"sha256 {hashed.hex()[:12]}…"
