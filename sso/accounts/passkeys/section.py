"""The section of the account page about passkeys."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sso.accounts.account_page.sections import time_ago
from sso.accounts.passkeys.authentication import PasskeyAuthentication
from sso.accounts.passkeys.changes import MAX_PASSKEYS
from sso.accounts.passkeys.registration import PasskeyRegistration
from sso.accounts.passkeys.store import Passkey, PasskeyStore
from sso.accounts.session_store import Session


class PasskeySection:
    def __init__(
        self, store: PasskeyStore, registration: PasskeyRegistration, authentication: PasskeyAuthentication
    ) -> None:
        self._store = store
        self._registration = registration
        self._authentication = authentication

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        passkeys = await self._store.list(session.user.user_id) if session.user.passkey_count else []
        return {
            "passkeys": [_passkey_values(passkey, now) for passkey in passkeys],
            "passkey_registration": self._registration.options(session, passkeys),
            "passkey_confirmation": await self._authentication.confirm_options(session),
            "passkeys_full": len(passkeys) >= MAX_PASSKEYS,
        }


def _passkey_values(passkey: Passkey, now: datetime) -> dict[str, Any]:
    return {
        "id": passkey.id,
        "name": passkey.name,
        "created": time_ago(passkey.created, now),
        "last_used": time_ago(passkey.last_used, now) if passkey.last_used else "",
    }
