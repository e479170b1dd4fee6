"""Known devices: browsers and game clients that have completed a login to an account before.

A known device is not a credential. Its failed attempts are counted separately, so that strangers who guess passwords
cannot lock the owner out. A browser is recognized by a cookie that has a MAC for each account, a game client by the
``factor`` with which it has logged in. MACs with all master keys are recognized, so that a change of the key does not
make devices unknown.

Devices that have not logged in since the user's last revocation (for example by a new password) share one counter,
because an attacker with the old password may have collected any number of them.
"""

import base64
import re

from msgspec import Struct

from sso.accounts.known_device_store import KnownFactorStore
from sso.accounts.model import User
from sso.accounts.user_store import UserStore
from sso.core.encryption import Keyring
from sso.core.ids import secret_token
from sso.db.database import Database

COOKIE_S = 400 * 86400  # the longest that browsers keep a cookie
MAX_ACCOUNTS = 5  # in the cookie of one browser

EARLIER = "earlier"  # the common name of all devices that have not logged in since the last revocation

# The device name, then for each account ``valid_from`` of its user at the login and a MAC over name, account and time.
_COOKIE = re.compile(rf"[A-Za-z0-9_-]{{43}}(?:\.[0-9]{{1,18}}~[A-Za-z0-9_-]{{43}}){{1,{MAX_ACCOUNTS}}}", re.ASCII)
_PURPOSE = "device cookie"


class FactorDevice(Struct, frozen=True):
    """The client of a login request, by the factor that it sent."""

    digest: bytes  # with the first master key; the device may be known by its digest with another one only
    name: str  # "" if the device is not known
    should_remember: bool


class KnownDevices:
    def __init__(self, database: Database, users: UserStore, keyring: Keyring) -> None:
        self._users = users
        self._keyring = keyring
        self._factors = KnownFactorStore(database)

    async def recognize_browser(self, account: str, cookie: str) -> str:
        """Returns the device name from the cookie if it has a valid MAC for this account, else ""."""
        name, entries = _split_cookie(cookie)
        if not (own := [entry for entry in entries if self._is_for(account, name, entry)]):
            return ""
        user = await self._users.get_by_login(account)
        return name if user and any(_valid_from(entry) == user.valid_from for entry in own) else EARLIER

    def cookie_for(self, user: User, cookie: str) -> str:
        """Returns the cookie for a browser that has completed a login, based on the cookie that it sent."""
        name, entries = _split_cookie(cookie)
        name = name or secret_token()
        mac = self._keyring.mac(_PURPOSE, _mac_text(name, user.login_key, user.valid_from))
        own = f"{user.valid_from}~{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
        others = [entry for entry in entries if not self._is_for(user.login_key, name, entry)]
        return ".".join([name, own, *others][: 1 + MAX_ACCOUNTS])

    async def recognize_factor(self, account: str, factor: str) -> FactorDevice:
        """Returns the device of a factor. The factor may be "" and the device unknown."""
        digests = self._keyring.macs("known factor", f"{account}:{factor}")
        row = await self._factors.find(digests) if factor else None
        if row is None:
            return FactorDevice(digests[0], "", bool(factor))
        name = EARLIER if row["is_earlier"] else digests[0].hex()
        return FactorDevice(digests[0], name, row["is_stale"] or row["is_earlier"])

    async def recognize_place(self, account: str, place: str) -> FactorDevice:
        """Returns the device of a sign-in that is known by something else than a factor, such as a network or a game.

        It decides only whether a sign-in notice is sent. Failed attempts are not counted under its name.
        """
        digests = self._keyring.macs("known place", f"{account}:{place}")
        row = await self._factors.find(digests)
        return FactorDevice(digests[0], digests[0].hex() if row else "", row is None or row["is_stale"])

    async def remember(self, user: User, device: FactorDevice) -> None:
        """Stores the device after a completed login, at most once a day. The oldest beyond MAX_FACTORS are removed."""
        if device.should_remember:
            await self._factors.remember(user, device.digest)

    def _is_for(self, account: str, name: str, entry: str) -> bool:
        mac = base64.urlsafe_b64decode(entry.partition("~")[2] + "=")
        return self._keyring.verify_mac(mac, _PURPOSE, _mac_text(name, account, _valid_from(entry)))


def _split_cookie(cookie: str) -> tuple[str, list[str]]:
    """Returns the device name and the entries of the accounts, or "" and none if the cookie is malformed."""
    if not _COOKIE.fullmatch(cookie):
        return "", []
    name, *entries = cookie.split(".")
    return name, entries


def _valid_from(entry: str) -> int:
    return int(entry.partition("~")[0])


def _mac_text(name: str, account: str, valid_from: int) -> str:
    return f"{name}:{valid_from}:{account}"
