"""Challenges for passkeys. A challenge is not stored until it is answered: it contains its expiry and a MAC.

The MAC binds it to its purpose and to a browser. ``PasskeyStore`` records a challenge with its first answer, right or
wrong, and refuses every other one.
"""

import base64
import os
import struct
from enum import StrEnum

from msgspec import Struct

from sso.core.encryption import Keyring
from sso.db.clock import DatabaseClock

CHALLENGE_S = 300
NONCE_BYTES = 16
MAC_BYTES = 32
_EXPIRY = struct.Struct(">Q")
_LENGTH = _EXPIRY.size + NONCE_BYTES + MAC_BYTES


class ChallengePurpose(StrEnum):
    SIGN_IN = "sign in"  # bound to the visit cookie
    SECOND_FACTOR = "second factor"  # bound to the visit cookie and the user
    CONFIRM = "confirm"  # bound to the browser session
    REGISTER = "register"  # bound to the browser session


class Challenge(Struct, frozen=True):
    raw: bytes
    expires: int


class PasskeyChallenges:
    def __init__(self, keyring: Keyring, clock: DatabaseClock) -> None:
        self._keyring = keyring
        self._clock = clock

    def create(self, purpose: ChallengePurpose, browser: str) -> bytes:
        """``browser`` is a secret or id that only this browser can present again."""
        expires = _EXPIRY.pack(int(self._clock.now()) + CHALLENGE_S)
        nonce = os.urandom(NONCE_BYTES)
        return expires + nonce + self._keyring.mac(f"passkey challenge:{purpose}", _text(expires, nonce, browser))

    def check(self, raw: bytes, purpose: ChallengePurpose, browser: str) -> Challenge | None:
        """Returns the challenge, or None if it has expired, or was made for another purpose or browser."""
        if len(raw) != _LENGTH or not browser:
            return None
        expires, nonce, mac = raw[:8], raw[8 : 8 + NONCE_BYTES], raw[8 + NONCE_BYTES :]
        if not self._keyring.verify_mac(mac, f"passkey challenge:{purpose}", _text(expires, nonce, browser)):
            return None
        (expiry,) = _EXPIRY.unpack(expires)
        return Challenge(raw, expiry) if self._clock.now() < expiry else None


def encode_base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_base64url(text: object) -> bytes:
    """Raises TypeError or ValueError if the value is not base64url without padding."""
    if not isinstance(text, str):
        raise TypeError("expected a text")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _text(expires: bytes, nonce: bytes, browser: str) -> str:
    return f"{expires.hex()}:{nonce.hex()}:{browser}"
