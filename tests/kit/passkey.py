"""A passkey in software, for tests over HTTP: it answers the options of a page as a browser and its device would."""

import base64
import hashlib
import os
import re
from typing import Any

import cbor2
import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

USER_PRESENT, USER_VERIFIED, HAS_CREDENTIAL, HAS_EXTENSIONS = 0x01, 0x04, 0x40, 0x80


def page_options(page: str, id: str = "") -> dict[str, Any]:
    """Returns the options in a page: of the script with this id, or the first."""
    match = re.search(rf'<script type="application/json"[^>]*{f"id=.{id}." if id else ""}>(.*?)</script>', page, re.S)
    assert match, f"no options {id} in the page"
    options: dict[str, Any] = orjson.loads(match[1])
    return options


class SoftwarePasskey:
    def __init__(self, origin: str, rp_id: str = "localhost") -> None:
        self.origin = origin
        self.rp_id = rp_id
        self.credential_id = os.urandom(32)
        self.sign_count = 0
        self.user_handle = b""
        self._key = ec.generate_private_key(ec.SECP256R1())

    def create(self, options: dict[str, Any], **changes: Any) -> str:
        """Answers the options of a registration. ``changes`` as for `get`, and ``key_members``, ``attestation``."""
        self.user_handle = _decode(options["user"]["id"])
        numbers = self._key.public_key().public_numbers()
        public_key: dict[Any, Any] = {1: 2, 3: -7, -1: 1}
        public_key |= {-2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        public_key |= changes.get("key_members", {})
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + cbor2.dumps(public_key)
        data = self._authenticator_data(HAS_CREDENTIAL, **changes) + attested
        data += changes.get("extensions", b"")
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data} | changes.get("attestation", {}))
        response = {
            "clientDataJSON": _encode(self._client_data("webauthn.create", options, **changes)),
            "attestationObject": _encode(attestation),
            "transports": ["internal"],
        }
        return self._answer(response)

    def get(self, options: dict[str, Any], **changes: Any) -> str:
        """Answers the options of a sign-in.

        ``changes``: origin, rp_id, flags, challenge, user_handle, counts, client_data (more members of the client
        data), extensions (CBOR after the authenticator data, for which ``flags`` must have HAS_EXTENSIONS).
        """
        if changes.get("counts", True):
            self.sign_count += 1
        client_data = self._client_data("webauthn.get", options, **changes)
        data = self._authenticator_data(0, **changes) + changes.get("extensions", b"")
        signature = self._key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": _encode(client_data),
            "authenticatorData": _encode(data),
            "signature": _encode(signature),
            "userHandle": _encode(changes.get("user_handle", self.user_handle)),
        }
        return self._answer(response)

    def _client_data(self, kind: str, options: dict[str, Any], **changes: Any) -> bytes:
        challenge = changes.get("challenge", options["challenge"])
        origin = changes.get("origin", self.origin)
        data = {"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": False}
        return orjson.dumps(data | changes.get("client_data", {}))

    def _authenticator_data(self, more: int, **changes: Any) -> bytes:
        flags = changes.get("flags", USER_PRESENT | USER_VERIFIED) | more
        rp_id = changes.get("rp_id", self.rp_id)
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.sign_count.to_bytes(4, "big")

    def _answer(self, response: dict[str, Any]) -> str:
        id = _encode(self.credential_id)
        answer = {"id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {}, "response": response}
        return orjson.dumps(answer).decode()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
