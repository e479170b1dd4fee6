"""Second factors: codes of an authenticator app (TOTP), and codes sent by e-mail. Each code works once."""

import hmac
import secrets
import time

import pyotp

from sso.accounts.mail import Outbox
from sso.accounts.model import User
from sso.accounts.users import UserStore
from sso.core.ids import digest
from sso.core.language import Text
from sso.core.sealed import Keyring, place
from sso.db.bridge import Database, Transaction
from sso.db.statement import Statement

STEP_S = 30
CODE_S = 600
RESEND_S = 60
GUESSES = 5  # at one mailed code
MAIL = Text(
    "Your sign-in code is %(code)s\n\nIt works once, for %(minutes)s minutes. If you did not try to sign in, somebody "
    "knows your password: change it.\n"
)

_NEW_CODE = Statement(
    """INSERT INTO email_codes AS e (user_id, digest, sent, expires)
    VALUES (:user_id, :digest, now(), now() + make_interval(secs => :life))
    ON CONFLICT (user_id) DO UPDATE SET digest = excluded.digest, sent = excluded.sent, expires = excluded.expires,
        failures = 0 WHERE e.sent < now() - make_interval(secs => :resend)
    RETURNING user_id"""
)
_USE_CODE = Statement(
    """DELETE FROM email_codes WHERE user_id = :user_id AND digest = :digest AND expires > now() AND failures < :guesses
    RETURNING user_id"""
)
_COUNT_GUESS = Statement("UPDATE email_codes SET failures = failures + 1 WHERE user_id = :user_id")


class SecondFactors:
    def __init__(
        self, database: Database, users: UserStore, keyring: Keyring, outbox: Outbox, service_name: str
    ) -> None:
        self._database = database
        self._users = users
        self._keyring = keyring
        self._outbox = outbox
        self._service_name = service_name

    async def check(self, user: User, code: str) -> bool:
        """True once per code. To be called only between the two questions to the throttle: codes are short."""
        if not (code.isascii() and code.isdecimal() and len(code) == 6):
            return False
        return await self._check_totp(user, code) or await self._check_mailed(user, code)

    async def send_code(self, user: User) -> None:
        """Mail a code, unless one was sent a moment ago."""
        code = f"{secrets.randbelow(10**6):06}"

        async def work(tx: Transaction) -> None:
            if await tx.value(
                _NEW_CODE,
                user_id=user.user_id,
                digest=_code_digest(user, code),
                life=float(CODE_S),
                resend=float(RESEND_S),
            ):
                await self._outbox.put(
                    tx,
                    user.login,
                    Text("Your sign-in code for %(service)s", service=self._service_name).shown(),
                    Text(MAIL, code=code, minutes=CODE_S // 60).shown(),
                )

        await self._database.transaction(work)

    def new_totp_secret(self) -> str:
        return pyotp.random_base32()

    def totp_uri(self, user: User, secret: str) -> str:
        return pyotp.TOTP(secret).provisioning_uri(name=user.login, issuer_name=self._service_name)

    def seal_totp(self, user_id: str, secret: str) -> str:
        return self._keyring.seal(totp_purpose(user_id), secret)

    async def enrol_totp(self, user: User, secret: str, code: str) -> bool:
        """True if the code proves that the app has the secret; it then counts from now on."""
        step = _matching_step(secret, code)
        if step is None:
            return False
        await self._users.set_totp(user.user_id, self.seal_totp(user.user_id, secret), step)
        return True

    async def _check_totp(self, user: User, code: str) -> bool:
        if user.totp_sealed is None:
            return False
        step = _matching_step(self._keyring.open(totp_purpose(user.user_id), user.totp_sealed), code)
        return step is not None and await self._users.use_totp_step(user.user_id, step)

    async def _check_mailed(self, user: User, code: str) -> bool:
        if not user.email_2fa:
            return False
        found = await self._database.value(
            _USE_CODE, user_id=user.user_id, digest=_code_digest(user, code), guesses=GUESSES
        )
        if found is None:
            await self._database.value(_COUNT_GUESS, user_id=user.user_id)
        return found is not None


def totp_purpose(user_id: str) -> str:
    return place("users.totp_sealed", user_id)


def _matching_step(secret: str, code: str) -> int | None:
    """The time step whose code this is: now, or one before or after for clocks that are a little off."""
    now = int(time.time()) // STEP_S
    totp = pyotp.TOTP(secret)
    for step in (now, now - 1, now + 1):
        if hmac.compare_digest(totp.at(step * STEP_S).encode(), code.encode()):
            return step
    return None


def _code_digest(user: User, code: str) -> bytes:
    return digest(f"{user.user_id}:{code}")
