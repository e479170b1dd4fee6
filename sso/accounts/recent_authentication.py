"""Recent authentication: before an important change, users prove again who they are.

A change is allowed if the user has authenticated in this browser session within the last ``RECENT_S`` seconds, by
signing in or for an earlier change. Otherwise its form asks for the password and a code of the second factor, or for a
passkey (the macro ``forms.confirm_fields``). What a form contains is always checked, also after a recent
authentication.
"""

from datetime import datetime
from typing import Protocol

from sso.accounts.authentication_context import UPSTREAM_AUTH, AuthenticationContext, by_passkey, by_password, continued
from sso.accounts.errors import InvalidCredentials, SecondFactorBlocked
from sso.accounts.form_problem import FormProblem
from sso.accounts.login.messages import code_problem, retry_problem, wrong_code_message
from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.second_factor.earlier_factors import EarlierFactors
from sso.accounts.second_factor.recovery_codes import FACTOR as RECOVERY
from sso.accounts.second_factor.recovery_codes import is_recovery_code, normalized_code
from sso.accounts.session_store import Session, SessionStore
from sso.core.errors import RetryLater
from sso.db.clock import DatabaseClock
from sso.web.client_connection import client_connection
from sso.web.language import _
from sso.web.request import client_address

RECENT_S = 600

WRONG_PASSWORD = FormProblem(_("Your current password is incorrect."))
PASSWORD_MISSING = FormProblem(_("Please enter your password, to confirm that it is you."))
WRONG_PASSKEY = FormProblem(_("Your passkey was not accepted. Please try again."))
SIGN_IN_AGAIN = FormProblem(_("Please sign out and sign in again, to confirm that it is you."))


class PasskeyConfirmation(Protocol):
    async def confirm(self, session: Session, credential: str, before: datetime | None = None) -> bool:
        """Returns True if a passkey of the session's user has signed a challenge of this session. Raises RetryLater.

        ``before``: only if the passkey was added before that moment.
        """


class RecentAuthentication:
    def __init__(
        self,
        password_login: PasswordLogin,
        factors: SecondFactors,
        sessions: SessionStore,
        clock: DatabaseClock,
        passkeys: PasskeyConfirmation | None = None,
    ) -> None:
        self._password_login = password_login
        self._factors = factors
        self._sessions = sessions
        self._clock = clock
        self._passkeys = passkeys

    def is_recent(self, session: Session) -> bool:
        """Returns whether the user has authenticated in this session within the last ``RECENT_S`` seconds.

        Users without a password, whose provider does not say when they have authenticated, cannot prove anything else:
        for them, a recent sign-in with the provider is enough.
        """
        at = session.authenticated
        if at is None and session.auth == UPSTREAM_AUTH and session.user.password_hash is None:
            at = session.created
        return at is not None and (self._clock.utc() - at).total_seconds() < RECENT_S

    async def confirm(self, session: Session, form: dict[str, str]) -> FormProblem | None:
        """Returns None if the user may make an important change, else what is wrong with the form."""
        outcome = await self.authenticate(session, form)
        return outcome if isinstance(outcome, FormProblem) else None

    async def authenticate(self, session: Session, form: dict[str, str]) -> AuthenticationContext | FormProblem:
        """Like `confirm`, but returns what the form has proved; without a proof, the authentication of the session."""
        if credential := form.get("credential"):
            outcome = await self._check_passkey(session, credential)
        elif session.user.password_hash is None:
            return continued(session) if self.is_recent(session) else SIGN_IN_AGAIN
        elif "current_password" in form:
            outcome = await self._check_password_and_code(session, form)
        else:
            return continued(session) if self.is_recent(session) else PASSWORD_MISSING
        if not isinstance(outcome, FormProblem):
            await self._sessions.mark_authenticated(session.id)
        return outcome

    async def prove_earlier_factor(
        self, session: Session, form: dict[str, str], factors: EarlierFactors
    ) -> FormProblem | None:
        """Returns None if this form proves one of the factors, whatever was proved before.

        The password is asked for too, if there is one.
        """
        if credential := form.get("credential"):
            outcome = await self._check_passkey(session, credential, factors.before)
        else:
            outcome = await self._check_password_and_code(session, form, factors)
        return outcome if isinstance(outcome, FormProblem) else None

    async def _check_passkey(
        self, session: Session, credential: str, before: datetime | None = None
    ) -> AuthenticationContext | FormProblem:
        try:
            is_confirmed = self._passkeys is not None and await self._passkeys.confirm(session, credential, before)
        except RetryLater as error:
            return retry_problem(error)
        return by_passkey() if is_confirmed else WRONG_PASSKEY

    async def _check_password_and_code(
        self, session: Session, form: dict[str, str], only: EarlierFactors | None = None
    ) -> AuthenticationContext | FormProblem:
        """``only``: the code must be one of these factors."""
        user, origin = only.narrowed(session.user) if only else session.user, (client_address(), device_of(session))
        code = form.get("present_otp", "")
        try:
            if user.password_hash:
                with client_connection().cancel_on_disconnect():
                    password = form.get("current_password", "")
                    if not await self._password_login.confirm_password(user, password, *origin):
                        return WRONG_PASSWORD
            if only is None and not user.second_factors:
                return by_password()
            if only and RECOVERY not in only.names and is_recovery_code(normalized_code(code)):
                return FormProblem(wrong_code_message(self._factors, user, code))
            return (await self._password_login.check_code(user, code, *origin)).authentication
        except InvalidCredentials:  # 422 like a wrong password: the user is signed in
            return FormProblem(wrong_code_message(self._factors, user, code))
        except (SecondFactorBlocked, RetryLater) as error:
            return code_problem(error, self._factors, user, code)


def device_of(session: Session) -> str:
    """Returns the device name of the session's browser, which is known because it is signed in."""
    return f"session {session.id}"
