"""The browser of the current request: its session, its device cookie and its name."""

from quart import Response

from sso.accounts.impersonation.visitor import ImpersonatedVisits
from sso.accounts.known_devices import COOKIE_S, KnownDevices
from sso.accounts.model import User
from sso.accounts.session_store import Session, SessionStore
from sso.web import language
from sso.web.cookies import DEVICE_COOKIE, SESSION_COOKIE, read_cookie, read_device_cookie, set_cookie
from sso.web.request import client_address
from sso.web.request_origin import browser_label as browser_label


class Visitor:
    def __init__(self, sessions: SessionStore, impersonated: ImpersonatedVisits) -> None:
        self._sessions = sessions
        self._impersonated = impersonated

    async def session(self, *, may_enrol: bool = False, may_accept: bool = False) -> Session | None:
        """Returns the session of the browser's cookie, if it is valid. Pages are then shown in the user's language.

        A session whose user must set up a second factor first is returned only with ``may_enrol``, one whose user must
        accept the terms first only with ``may_accept``. At the account page, an administrator may have the session of a
        player, which is refused for everything that only the player may do.
        """
        if impersonated := await self._impersonated.session():
            return impersonated
        secret = read_cookie(SESSION_COOKIE)
        if not secret:
            return None
        session = await self._sessions.look_up(secret, client_address(), may_enrol=may_enrol, may_accept=may_accept)
        if session:
            language.use_user_language(session.user.lang)
        return session


def remember_browser(response: Response, devices: KnownDevices, user: User) -> None:
    """Sets the device cookie, which makes this browser a known device of the user."""
    set_cookie(response, DEVICE_COOKIE, devices.cookie_for(user, read_device_cookie()), COOKIE_S)
