"""The second step of a sign-in of a program: the code of a user with a second factor."""

from typing import Any

from sso.accounts.authentication_context import AuthenticationContext
from sso.accounts.errors import OtpRequired, SecondFactorBlocked
from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.model import SignedIn, User
from sso.accounts.second_factor.codes import SecondFactors
from sso.core.net import Address
from sso.web import language


class CodeCheck:
    def __init__(self, password_login: PasswordLogin, factors: SecondFactors) -> None:
        self._password_login = password_login
        self._factors = factors

    async def check(
        self, user: User, code: str, peer: Address, device: str, first: AuthenticationContext | None = None
    ) -> SignedIn:
        """Checks the code of a user whose first factor was correct: ``first``, or the password.

        Raises OtpRequired if there is no code: the program sends the request again with one.
        """
        if not code:
            raise OtpRequired(user.second_factors, await self._mail_state(user))
        return await self._password_login.check_code(user, code, peer, device, first)

    async def _mail_state(self, user: User) -> dict[str, Any]:
        """Mails a code, if the user gets codes by mail. Says whether a mail was sent, or when the next one can be."""
        if not user.email_2fa:
            return {}
        language.use_user_language(user.lang)
        try:
            wait_s = await self._factors.send_code(user)
        except SecondFactorBlocked:
            return {"email_sent": False}
        return {"email_sent": False, "email_wait_s": wait_s} if wait_s else {"email_sent": True}
