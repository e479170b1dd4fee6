"""Recovery codes on their way to the page that shows them once, encrypted: in a cookie, and in a form field."""

import orjson

from sso.accounts.model import User
from sso.core.encryption import EncryptionError, Keyring
from sso.db.clock import DatabaseClock

SHOWN_S = 600


class ShownCodes:
    def __init__(self, keyring: Keyring, clock: DatabaseClock) -> None:
        self._keyring = keyring
        self._clock = clock

    def encrypt(self, user: User, codes: tuple[str, ...]) -> str:
        return self._keyring.encrypt(_purpose(user), orjson.dumps([int(self._clock.now()), *codes]).decode())

    def decrypt(self, user: User, sealed: str) -> tuple[str, ...]:
        """Returns the codes, or none if the value is invalid, expired or older than the user's last change."""
        try:
            made, *codes = orjson.loads(self._keyring.decrypt(_purpose(user), sealed))
        except (EncryptionError, ValueError):
            return ()
        return tuple(codes) if self._clock.now() - made <= SHOWN_S else ()


def _purpose(user: User) -> str:
    return f"recovery codes:{user.user_id}:{user.valid_from}"
