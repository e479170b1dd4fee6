"""The browser of the current request: its session, its device cookie and its name."""

from quart import Response, request

from sso.accounts.known_devices import COOKIE_S, KnownDevices
from sso.accounts.model import User
from sso.accounts.sessions import Session, SessionStore
from sso.web import language
from sso.web.cookies import DEVICE_COOKIE, SESSION_COOKIE, read_cookie, read_device_cookie, set_cookie
from sso.web.request import client_address

_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


class Visitor:
    def __init__(self, sessions: SessionStore) -> None:
        self._sessions = sessions

    async def session(self, *, may_enrol: bool = False) -> Session | None:
        """Returns the session of the browser's cookie, if it is valid. Pages are then shown in the user's language.

        A session whose user must set up a second factor first is returned only with ``may_enrol``.
        """
        secret = read_cookie(SESSION_COOKIE)
        session = await self._sessions.look_up(secret, client_address(), may_enrol=may_enrol) if secret else None
        if session:
            language.use_user_language(session.user.lang)
        return session


def remember_browser(response: Response, devices: KnownDevices, user: User) -> None:
    """Sets the device cookie, which makes this browser a known device of the user."""
    set_cookie(response, DEVICE_COOKIE, devices.cookie_for(user, read_device_cookie()), COOKIE_S)


def browser_label() -> str:
    """Returns browser and operating system from the User-Agent header, such as "Firefox on Linux"."""
    agent = request.headers.get("User-Agent", "")[:1000]
    name = next((label for mark, label in _BROWSERS if mark in agent), "Browser")
    system = next((label for mark, label in _SYSTEMS if mark in agent), "")
    return f"{name} on {system}" if system else name
