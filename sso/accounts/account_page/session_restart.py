"""Continues the session of a browser after a change that revoked everything issued to the user."""

from quart import Response

from sso.accounts.account_page.notices import account_url
from sso.accounts.authentication_context import AuthenticationContext
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login.view import ENROL_PATH
from sso.accounts.model import User
from sso.accounts.second_factor.requirement import SecondFactorRequirement
from sso.accounts.session_store import Session, SessionStore
from sso.accounts.visitor import browser_label, remember_browser
from sso.web.cookies import SESSION_COOKIE, set_cookie
from sso.web.redirects import see_other
from sso.web.request import client_address


class SessionRestart:
    def __init__(
        self, sessions: SessionStore, devices: KnownDevices, requirement: SecondFactorRequirement, life_s: int
    ) -> None:
        self._sessions = sessions
        self._devices = devices
        self._requirement = requirement
        self._life_s = life_s

    async def restart(self, session: Session, user: User, authentication: AuthenticationContext, done: str) -> Response:
        """Redirects to the account page with a new session in place of the browser's old one.

        ``authentication`` comes from the old session, unless the form contained a proof. ``done`` names the notice to
        show.
        """
        address = client_address()
        new = await self._sessions.start(
            user,
            authentication,
            address,
            browser_label(),
            session=session.secret,
            is_sign_in=False,
            must_enrol=await self._requirement.must_enrol(user, address),
        )
        response = see_other(ENROL_PATH if new.must_enrol else account_url(done))
        set_cookie(response, SESSION_COOKIE, new.secret, self._life_s)
        remember_browser(response, self._devices, user)
        return response

    def keep(self, session: Session, done: str) -> Response:
        """Redirects to the account page with the current session, after everything else was revoked."""
        response = see_other(account_url(done))
        remember_browser(response, self._devices, session.user)
        return response
