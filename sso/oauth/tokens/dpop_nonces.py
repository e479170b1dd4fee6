"""Nonces for DPoP proofs (RFC 9449 section 8), so that a client cannot make proofs in advance.

A nonce consists of its time and a MAC with the master key: all nodes accept it, and none has to store it. A proof works
once, whatever its nonce is.
"""

import base64
import re

from sso.core.encryption import Keyring
from sso.db.clock import DatabaseClock

NONCE_S = 300
STEP_S = 30  # one nonce is handed out for this long
MAX_AHEAD_S = 60  # the clocks of nodes may differ
_NONCE = re.compile(r"([0-9]{1,12})\.([A-Za-z0-9_-]{43})", re.ASCII)
_PURPOSE = "dpop nonce"


class DpopNonces:
    def __init__(self, keyring: Keyring, clock: DatabaseClock) -> None:
        self._keyring = keyring
        self._clock = clock

    def current(self) -> str:
        time = str(int(self._clock.now()) // STEP_S * STEP_S)
        return f"{time}.{_text(self._keyring.mac(_PURPOSE, time))}"

    def is_valid(self, nonce: str) -> bool:
        """Returns whether a node of this service has handed out the nonce a short time ago."""
        match = _NONCE.fullmatch(nonce)
        if match is None or not -MAX_AHEAD_S <= self._clock.now() - int(match[1]) <= NONCE_S:
            return False
        mac = base64.urlsafe_b64decode(match[2] + "=")
        return _text(mac) == match[2] and self._keyring.verify_mac(mac, _PURPOSE, match[1])


def _text(mac: bytes) -> str:
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
