"""Who may ask about a session: the rules of binding (§4.3), without a store or a request in them.

Evidence is an address, the secret of the Location header, or a signature. One good piece is enough; a wrong piece is
a violation, even beside a good one.
"""

import hashlib
import hmac
from dataclasses import dataclass, field

from sso.core.ids import digest
from sso.core.keys import UnusableKey, load_rsa_der, load_rsa_public, public_der, verify_rsa_signature
from sso.core.net import Address
from sso.core.verification import VerificationPool
from sso.gsid.model import GameSessionData


@dataclass(frozen=True)
class ClientEvidence:
    """What a request brings: at most one of each kind, and each must be right."""

    address: Address
    location: str | None = field(default=None, repr=False)
    signature: str | None = field(default=None, repr=False)
    public_key: str | None = field(default=None, repr=False)
    signed: bytes = field(default=b"", repr=False)  # what a signature is over


@dataclass(frozen=True)
class ProofFailure:
    """Which binding failed, and both values, for an operator. Secrets are shown by the beginning of their digests."""

    reason: str
    expected: str = ""
    found: str = ""


async def check(
    facts: GameSessionData,
    evidence: ClientEvidence,
    location_url: str,
    pool: VerificationPool,
    *,
    address_suffices: bool = False,
) -> ProofFailure | None:
    """``address_suffices``: also for a session with a key, as for its WebSocket.

    Where there is nothing but an address, a poll is judged by the same rule in a statement (``poll_store.py``).
    """
    if evidence.public_key is not None and (wrong := _check_key(facts.public_key, evidence.public_key)):
        return wrong
    if evidence.location is not None:
        found = digest(evidence.location.removeprefix(location_url))
        if not hmac.compare_digest(found, facts.location):
            return ProofFailure("wrong location", _name(facts.location), _name(found))
    if evidence.signature is not None:
        return await _check_signature(facts.public_key, evidence, evidence.signature, pool)
    if evidence.location is not None:
        return None
    if facts.public_key is not None and not address_suffices:
        return ProofFailure(
            "the session has a key, and the request neither signature nor location", "a signature", "none"
        )
    if str(evidence.address) != facts.address:
        return ProofFailure("other address", facts.address, str(evidence.address))
    return None


def _check_key(registered: bytes | None, text: str) -> ProofFailure | None:
    try:
        found = public_der(load_rsa_public(text))
    except UnusableKey as error:
        return ProofFailure("unusable public key", _key_name(registered), str(error))
    if found != registered:
        return ProofFailure("other public key", _key_name(registered), _key_name(found))
    return None


async def _check_signature(
    registered: bytes | None, evidence: ClientEvidence, signature: str, pool: VerificationPool
) -> ProofFailure | None:
    if registered is None:
        return ProofFailure("a signature, but no key was registered", "no key", "a signature")
    try:
        key = load_rsa_der(registered)
    except UnusableKey as error:
        return ProofFailure("the registered key is unusable", "a key within the limits", str(error))
    signed = evidence.signed
    if not await pool.run(evidence.address, key, verify_rsa_signature, key, signature, signed):
        return ProofFailure(
            "wrong signature", f"by key {_key_name(registered)}", f"{len(signed)} bytes signed otherwise"
        )
    return None


def _key_name(der: bytes | None) -> str:
    return _name(hashlib.sha256(der).digest()) if der else "no key"


def _name(hashed: bytes) -> str:
    return f"sha256 {hashed.hex()[:12]}…"
