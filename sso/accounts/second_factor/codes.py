"""Second factors: codes of an authenticator app (TOTP), mailed codes and recovery codes. Each code works once."""

import hmac
import secrets
from urllib.parse import quote

import pyotp

from sso.accounts.errors import SecondFactorBlocked
from sso.accounts.model import User
from sso.accounts.second_factor.recovery_codes import FACTOR as RECOVERY
from sso.accounts.second_factor.recovery_codes import RecoveryCodes, is_recovery_code, normalized_code
from sso.accounts.second_factor.store import (
    MAX_ATTEMPTS,
    SecondFactorAttempts,
    claim_block_notice,
    clear_attempts,
    count_code_attempt,
    read_code_wait,
    store_mailed_code,
    use_mailed_code,
    use_totp_step,
)
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring, column_purpose
from sso.core.language import Text, current_language
from sso.db.database import Database
from sso.db.transaction import Runner, Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox

STEP_S = 30
CODE_S = 600
RESEND_S = 60
FACTORS_WITH_CODES = ("totp", "email")
MAX_CODE_ATTEMPTS = 5  # for one mailed code
MAX_LABEL, MAX_ISSUER = 72, 48  # characters in the URI for authenticator apps


class SecondFactors:
    def __init__(
        self,
        database: Database,
        keyring: Keyring,
        outbox: Outbox,
        brand: CurrentBrand,
        recovery_codes: RecoveryCodes,
    ) -> None:
        self._database = database
        self._keyring = keyring
        self._outbox = outbox
        self._brand = brand
        self._recovery_codes = recovery_codes
        self._attempts = SecondFactorAttempts(database)

    async def check(self, user: User, code: str) -> str:
        """Returns the factor of a code that is correct and has not been used, "" for another code.

        The attempt is counted before it is checked.

        A recovery code is accepted in place of every other code. Raises SecondFactorBlocked if too many wrong codes
        have blocked all factors of the user. The caller has already applied its rate limits.
        """
        code = normalized_code(code)
        if is_recovery_code(code):
            return RECOVERY if await self._check_recovery_code(user, code) else ""
        factors = [factor for factor in user.second_factors if factor in FACTORS_WITH_CODES]
        if not factors or not (code.isascii() and code.isdecimal() and len(code) == 6):
            return ""
        counts = await self._attempts.count(user.user_id, factors)
        for factor, is_correct in (("totp", self._is_totp_code), ("email", self._is_mailed_code)):
            if factor in counts and await is_correct(user, code):
                await self._attempts.record_success(user.user_id, factor)
                return factor
        if len(counts) < len(factors) or any(count >= MAX_ATTEMPTS for count in counts.values()):
            await self._notify_of_block(user)
        if not counts:
            raise SecondFactorBlocked
        return ""

    def was_used(self, user: User, code: str) -> bool:
        """Returns True if this is a TOTP code that the user, as it was read, has used already.

        Explains to the user why ``check`` has rejected a code that the app still shows.
        """
        if user.totp_sealed is None:
            return False
        secret = self._keyring.decrypt(totp_purpose(user.user_id), user.totp_sealed)
        step = self.matching_totp_step(secret, normalized_code(code))
        return step is not None and step <= user.totp_last_step

    async def _check_recovery_code(self, user: User, code: str) -> bool:
        counts = await self._attempts.count(user.user_id, [RECOVERY])
        if counts and await self._recovery_codes.use(user, code):
            await clear_attempts(self._database, user.user_id)  # the owner is back: codes are accepted again
            return True
        if not counts or counts[RECOVERY] >= MAX_ATTEMPTS:
            await self._notify_of_block(user)
        if not counts:
            raise SecondFactorBlocked
        return False

    async def send_code(self, user: User) -> int:
        """Mails a code and returns 0. Returns the seconds to wait if one was sent less than RESEND_S seconds ago.

        Raises SecondFactorBlocked, and sends nothing, if wrong codes have blocked mailed codes.
        """
        code, language = f"{secrets.randbelow(10**6):06}", current_language.get()
        content = _code_mail(code, self._brand.name)

        async def work(tx: Transaction) -> int:
            code_digest = self._keyring.mac(_code_purpose(user), code)
            if not await store_mailed_code(tx, user.user_id, code_digest, self.code_life_s(user), RESEND_S):
                return max(1, await _code_wait(tx, user))
            await self._outbox.put(tx, user.login, content, language)
            return 0

        return await self._database.transaction(work)

    def code_life_s(self, _user: User) -> int:
        """How long a mailed code works."""
        return CODE_S

    async def code_wait(self, user: User) -> int:
        """Returns the seconds until the next code can be mailed; 0 if it can be now. Raises SecondFactorBlocked."""
        return await _code_wait(self._database, user)

    def new_totp_secret(self) -> str:
        return pyotp.random_base32()

    def totp_uri(self, user: User, secret: str) -> str:
        """Returns the text of the QR code. Its label is shortened, because the size of the code grows with it."""
        label, issuer = _shortened(user.login, MAX_LABEL), _shortened(self._brand.name, MAX_ISSUER)
        return pyotp.TOTP(secret).provisioning_uri(name=label, issuer_name=issuer)

    def encrypt_totp(self, user_id: str, secret: str) -> str:
        return self._keyring.encrypt(totp_purpose(user_id), secret)

    def matching_totp_step(self, secret: str, code: str) -> int | None:
        """Returns the time step of the code if it is one of this secret, else None."""
        return _matching_step(secret, code, self._database.clock.now())

    async def _is_totp_code(self, user: User, code: str) -> bool:
        assert user.totp_sealed is not None  # only factors of the user are checked
        secret = self._keyring.decrypt(totp_purpose(user.user_id), user.totp_sealed)
        step = self.matching_totp_step(secret, code)
        return step is not None and await use_totp_step(self._database, user.user_id, step)

    async def _is_mailed_code(self, user: User, code: str) -> bool:
        stored_digest = await count_code_attempt(self._database, user.user_id, MAX_CODE_ATTEMPTS)
        if stored_digest is None or not self._keyring.verify_mac(stored_digest, _code_purpose(user), code):
            return False
        return await use_mailed_code(self._database, user.user_id, stored_digest)

    async def _notify_of_block(self, user: User) -> None:
        """Mails the user once that a factor is blocked."""
        content = _block_mail(self._brand.name)

        async def work(tx: Transaction) -> None:
            if await claim_block_notice(tx, user.user_id):
                await self._outbox.put(tx, user.login, content, user.lang)

        await self._database.transaction(work)


async def _code_wait(runner: Runner, user: User) -> int:
    wait_s = await read_code_wait(runner, user.user_id, RESEND_S)
    if wait_s is None:
        raise SecondFactorBlocked
    return wait_s


def _shortened(text: str, max_length: int) -> str:
    """Returns the text, or its beginning and "...", so that it has at most ``max_length`` characters in a URI."""
    shortened, end = text, min(len(text), max_length)
    while len(quote(shortened)) > max_length:
        end -= 1
        shortened = text[:end] + "..."
    return shortened


def totp_purpose(user_id: str) -> str:
    return column_purpose("users.totp_sealed", user_id)


def _matching_step(secret: str, code: str, now: float) -> int | None:
    """Returns the time step of the code: the current one or a neighbour, for clocks that are slightly off."""
    current = int(now) // STEP_S
    totp = pyotp.TOTP(secret)
    for step in (current, current - 1, current + 1):
        if hmac.compare_digest(totp.at(step * STEP_S).encode(), code.encode()):
            return step
    return None


def _code_purpose(user: User) -> str:
    return column_purpose("email_codes.digest", user.user_id)


def _code_mail(code: str, service_name: str) -> MailContent:
    return MailContent(
        Text("Your sign-in code for %(service)s", service=service_name),
        (Text("Your sign-in code is"),),
        (
            Text(
                "It works once and expires in %(minutes)s minutes. If you did not try to sign in, someone knows your "
                "password: change it.",
                minutes=CODE_S // 60,
            ),
        ),
        code=code,
    )


def _block_mail(service_name: str) -> MailContent:
    return MailContent(
        Text("Two-step sign-in for %(service)s is blocked", service=service_name),
        (
            Text(
                "Someone who knows your password entered %(count)s wrong codes in a row, so your account no longer "
                "accepts codes.",
                count=MAX_ATTEMPTS,
            ),
            Text(
                "If this was not you, change your password on a device where you are signed in. To sign in with codes "
                "again, ask support to unblock your account."
            ),
        ),
    )
