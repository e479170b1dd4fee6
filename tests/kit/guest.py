"""A game on a device: it has a key pair, and signs its player in as a guest."""

import base64
import os
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

GUEST = "/proxy/api/guest"
FACTOR = "device"

Key = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def key_text(key: Key) -> str:
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


def signature(key: Key, body: bytes) -> str:
    match key:
        case ed25519.Ed25519PrivateKey():
            raw = key.sign(body)
        case ec.EllipticCurvePrivateKey():
            raw = key.sign(body, ec.ECDSA(hashes.SHA256()))
        case rsa.RSAPrivateKey():
            raw = key.sign(body, padding.PKCS1v15(), hashes.SHA256())
    return base64.b64encode(raw).decode()


@dataclass(frozen=True)
class Device:
    key: Key = field(default_factory=ed25519.Ed25519PrivateKey.generate)

    def body(self, **fields: Any) -> bytes:
        """The body of a request. A field with the value None is left out."""
        own = {"public_key": key_text(self.key), "ts": int(time.time()), "nonce": os.urandom(16).hex()}
        return orjson.dumps({name: v for name, v in {**own, "factor": FACTOR, **fields}.items() if v is not None})

    def headers(self, body: bytes) -> dict[str, str]:
        return {"Content-Type": "application/json", "Request-Sign": signature(self.key, body)}

    def call(self, client: httpx.Client, **fields: Any) -> httpx.Response:
        body = self.body(**fields)
        return client.post(GUEST, content=body, headers=self.headers(body))

    def sign_in(self, client: httpx.Client, **fields: Any) -> dict[str, Any]:
        answer = self.call(client, **fields)
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()
        return data


def bearer(data: dict[str, Any], factor: str = FACTOR) -> dict[str, str]:
    """The headers of a request with the user JWT of a sign-in."""
    return {"Authorization": f"Bearer {data['jwt']}", "Factor": factor}
