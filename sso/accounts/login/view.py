"""The last steps of every login by page: the question for the second factor, and the new session."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import quote

from quart import Response

from sso.accounts.authentication_context import PASSWORD, is_by_link
from sso.accounts.errors import AccountClosed, Banned, SecondFactorBlocked
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login.flow import LoginFlow
from sso.accounts.model import SignedIn, User
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.second_factor.requirement import SecondFactorRequirement
from sso.accounts.session_store import Session, SessionStore
from sso.accounts.sign_in_notices import SignInNotices
from sso.accounts.terms.terms import TERMS_PATH
from sso.accounts.visitor import browser_label, remember_browser
from sso.core.ban import ban_in_force
from sso.db.clock import DatabaseClock
from sso.web import language
from sso.web.cookies import (
    IMPERSONATION_COOKIE,
    SESSION_COOKIE,
    VISIT_COOKIE,
    delete_cookie,
    read_cookie,
    read_device_cookie,
    set_cookie,
)
from sso.web.redirects import safe_next, see_other
from sso.web.request import client_address

ENROL_PATH = "/account/enrol"


class ClosedAccountView(Protocol):
    async def show(self, closed: AccountClosed, next_path: str | None) -> Response:
        """Returns the page that says when the account will be deleted, with a form that keeps it."""


class LoginCompletion:
    """Each kind of login (password, passkey, another provider) ends here."""

    def __init__(
        self,
        sessions: SessionStore,
        factors: SecondFactors,
        requirement: SecondFactorRequirement,
        devices: KnownDevices,
        notices: SignInNotices,
        life_s: int,
        clock: DatabaseClock,
        appeal_url: str,
    ) -> None:
        self._clock = clock
        self._appeal_url = appeal_url
        self._sessions = sessions
        self._requirement = requirement
        self._factors = factors
        self._devices = devices
        self._notices = notices
        self._life_s = life_s

    async def ask_for_code(self, user: User, next_path: str | None, auth: str = PASSWORD) -> Response:
        """Redirects to the form for the second factor, which continues at ``next_path``. ``auth``: the first factor.

        Raises Banned for a ban of scope "all".
        """
        self._require_not_banned(user)
        language.use_user_language(user.lang)
        if user.email_2fa:
            with suppress(SecondFactorBlocked):  # the form says so
                await self._factors.send_code(user)
        response = see_other("/login/code" + next_query(next_path))
        set_cookie(response, VISIT_COOKIE, await self._sessions.start_challenge(user, auth))
        return response

    async def ask_for_second_factor(self, signed_in: SignedIn, next_path: str | None) -> Response:
        """Leads to the form for the second factor, which the sign-in lacks.

        After a mailed link, a mailed code would prove nothing more. The user then signs in with the new password.
        """
        if is_by_link(signed_in.auth):
            return see_other("/login" + next_query(next_path))
        return await self.ask_for_code(signed_in.user, next_path, signed_in.auth)

    async def start_session(
        self, signed_in: SignedIn, success: Mapping[str, Any] | None = None, flow: LoginFlow | None = None
    ) -> Session:
        """Starts a session with a new secret, and ends the sessions of the cookies that the browser sent.

        ``success`` counts a correct password or a passkey, see `SessionStore.start`. The same statement may complete
        ``flow``. Sends a sign-in notice if the browser is not known yet. The caller completes no flow with a session
        whose user must set up a second factor or accept the terms (``is_usable``).
        Raises AccountClosed if the account is going to be deleted, and Banned for a ban of scope "all".
        """
        self._require_not_banned(signed_in.user)
        if signed_in.user.is_closed:
            raise AccountClosed(signed_in.user, signed_in.auth, needs_code=False)
        address = client_address()
        session = await self._sessions.start(
            signed_in.user,
            signed_in.authentication,
            address,
            browser_label(),
            session=read_cookie(SESSION_COOKIE),
            visit=read_cookie(VISIT_COOKIE),
            must_enrol=await self._requirement.must_enrol(signed_in.user, address),
            success=success,
            extension=flow.sign_in_extension(signed_in) if flow else None,
        )
        await self._notices.browser_signed_in(signed_in.user, read_device_cookie(), browser_label(), address)
        return session

    def _require_not_banned(self, user: User) -> None:
        if ban := ban_in_force(user.bans, self._clock.now()):
            raise Banned(ban, self._appeal_url)

    async def must_prove_second_factor(self, signed_in: SignedIn) -> bool:
        """Returns True if the sign-in was without the user's second factor, and the service requires it."""
        return await self._requirement.must_prove(signed_in, client_address())

    def redirect(self, session: Session, path: str) -> Response:
        """Redirects with the cookies of the new session. Terms come first, then a second factor that must be set up."""
        if not session.is_usable:
            step = TERMS_PATH if session.must_accept else ENROL_PATH
            path = step + next_query(path.partition("#")[0])  # a path with a fragment is no path to continue at
        response = see_other(path)
        set_cookie(response, SESSION_COOKIE, session.secret, self._life_s)
        if read_cookie(IMPERSONATION_COOKIE):  # of someone who has used this browser before
            delete_cookie(response, IMPERSONATION_COOKIE)
        remember_browser(response, self._devices, session.user)
        delete_cookie(response, VISIT_COOKIE)
        return response


def next_query(next_path: str | None) -> str:
    """Returns the query that names the path to continue at; "" if there is none."""
    return f"?next={quote(safe_next(next_path))}" if next_path else ""
