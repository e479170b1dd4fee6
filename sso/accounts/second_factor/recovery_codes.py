"""Recovery codes: ten codes that replace a lost second factor. Each works once; a new set replaces the old one.

A code has twelve digits, so it can be typed into every field for codes, with any keyboard. The digests of a set are
made with a random key of that set, which is stored encrypted.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.second_factor.store import (
    count_recovery_codes,
    read_recovery_key,
    replace_recovery_codes,
    use_recovery_code,
)
from sso.accounts.session_store import Session
from sso.accounts.user_store import lock_unchanged_user
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring, column_purpose
from sso.core.language import Text, plural
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox

CODES = 10  # in a set
DIGITS = 12
GROUP = 4  # digits between two hyphens
FACTOR = "recovery"  # the counter of wrong codes

_CODE = re.compile(rf"[0-9]{{{DIGITS}}}", re.ASCII)


class RecoveryCodes:
    def __init__(self, database: Database, keyring: Keyring, outbox: Outbox, brand: CurrentBrand) -> None:
        self._database = database
        self._keyring = keyring
        self._outbox = outbox
        self._brand = brand

    async def replace(self, tx: Transaction, user_id: str) -> tuple[str, ...]:
        """Replaces the codes of the user in a transaction. Returns the new ones, which are not stored."""
        key, codes = os.urandom(32), _new_codes()
        sealed = self._keyring.encrypt(_key_purpose(user_id), key.hex())
        await replace_recovery_codes(tx, user_id, sealed, [_digest(key, code) for code in codes])
        await record_event(tx, user_id, EventKind.RECOVERY_CODES_CREATED)
        return tuple(map(displayed_code, codes))

    async def make_new(self, user: User) -> tuple[str, ...] | None:
        """Replaces the codes and notifies the user. Returns None if the user was changed since it was read."""
        content = _new_codes_mail(self._brand.name)

        async def work(tx: Transaction) -> tuple[str, ...] | None:
            if not await lock_unchanged_user(tx, user):
                return None
            codes = await self.replace(tx, user.user_id)
            await self._outbox.put(tx, user.login, content, user.lang)
            return codes

        return await self._database.transaction(work)

    async def use(self, user: User, code: str) -> bool:
        """Uses up a code, in the form of ``normalized_code``. Returns False if the user has no such code."""
        sealed = await read_recovery_key(self._database, user.user_id)
        if sealed is None:
            return False
        key = bytes.fromhex(self._keyring.decrypt(_key_purpose(user.user_id), sealed))

        async def work(tx: Transaction) -> bool:
            if not await use_recovery_code(tx, user.user_id, _digest(key, code)):
                return False
            left = await count_recovery_codes(tx, user.user_id)
            await record_event(tx, user.user_id, EventKind.RECOVERY_CODE_USED)
            await self._outbox.put(tx, user.login, _used_mail(self._brand.name, left), user.lang)
            return True

        return await self._database.transaction(work)

    async def count_left(self, user_id: str) -> int:
        return await count_recovery_codes(self._database, user_id)


def normalized_code(text: str) -> str:
    """Returns a code of any kind as users type it, without spaces and hyphens."""
    return text.replace(" ", "").replace("-", "")


def is_recovery_code(code: str) -> bool:
    """Returns whether the normalized code has the form of a recovery code."""
    return _CODE.fullmatch(code) is not None


def displayed_code(code: str) -> str:
    return "-".join(code[start : start + GROUP] for start in range(0, len(code), GROUP))


def _new_codes() -> Sequence[str]:
    codes: set[str] = set()
    while len(codes) < CODES:
        codes.add(f"{secrets.randbelow(10**DIGITS):0{DIGITS}}")
    return sorted(codes)


def _digest(key: bytes, code: str) -> bytes:
    return hmac.digest(key, code.encode(), hashlib.sha256)


def _key_purpose(user_id: str) -> str:
    return column_purpose("recovery_code_sets.key_sealed", user_id)


def _new_codes_mail(service_name: str) -> MailContent:
    return MailContent(
        Text("New recovery codes for %(service)s", service=service_name),
        (
            Text("New recovery codes were made for your account. The old ones no longer work."),
            Text("If this was not you, change your password and ask support for help."),
        ),
    )


def _used_mail(service_name: str, left: int) -> MailContent:
    return MailContent(
        Text("A recovery code for %(service)s was used", service=service_name),
        (
            Text("Someone signed in to your account, or changed it, with one of your recovery codes."),
            plural("You have %(count)s recovery code left.", "You have %(count)s recovery codes left.", left),
            Text("If this was not you, change your password and make new recovery codes now."),
        ),
    )


class SecondFactorSection:
    def __init__(self, recovery_codes: RecoveryCodes) -> None:
        self._recovery_codes = recovery_codes

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        user = session.user
        left = await self._recovery_codes.count_left(user.user_id) if user.second_factors else 0
        return {"recovery_codes_left": left, "recovery_codes_total": CODES}
