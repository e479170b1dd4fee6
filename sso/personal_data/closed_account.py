"""The ticket of a user who has authenticated for a closed account, and may keep it.

It is an encrypted form field, bound to the browser's visit and to the user's ``valid_from``, which the next change of
the account advances. So it works once, in one browser, for ten minutes.
"""

from datetime import UTC, datetime

import orjson
from msgspec import Struct

from sso.accounts.authentication_context import AuthenticationContext, by_ticket
from sso.accounts.errors import AccountClosed
from sso.accounts.model import User
from sso.accounts.user_store import UserStore
from sso.core.encryption import EncryptionError, Keyring
from sso.core.ids import digest
from sso.db.clock import DatabaseClock

TICKET_S = 600


class KeepTicket(Struct, frozen=True):
    user: User
    authentication: AuthenticationContext
    needs_code: bool


class KeepTickets:
    def __init__(self, keyring: Keyring, users: UserStore, clock: DatabaseClock) -> None:
        self._keyring = keyring
        self._users = users
        self._clock = clock

    def issue(self, closed: AccountClosed, visit: str) -> str:
        user = closed.user
        content = [int(self._clock.now()), user.user_id, user.valid_from, closed.auth, closed.needs_code]
        return self._keyring.encrypt(_purpose(visit), orjson.dumps(content).decode())

    async def read(self, ticket: str, visit: str) -> KeepTicket | None:
        """Returns None if the ticket is invalid or has expired, and if the account can no longer be kept."""
        try:
            issued, user_id, valid_from, auth, needs_code = orjson.loads(self._keyring.decrypt(_purpose(visit), ticket))
        except (EncryptionError, ValueError):
            return None
        user = await self._users.get(user_id)
        if self._clock.now() - issued > TICKET_S or user is None or user.valid_from != valid_from:
            return None
        authentication = by_ticket(auth, datetime.fromtimestamp(issued, UTC))
        return KeepTicket(user, authentication, needs_code) if user.can_be_kept else None


def _purpose(visit: str) -> str:
    return f"keep account:{digest(visit).hex()}"
