"""Known devices: browsers and game clients that have completed a sign-in to an account before.

A known device is no credential. Its failed attempts are counted on their own, so that strangers who guess at the
account cannot lock it out. A browser shows a cookie that names it and has a MAC for each account; a game client shows
the ``factor`` with which it has signed in.

Devices that have not signed in since everything of the user was last ended, as with a new password, share one counter:
whoever knew the old password may have collected any number of them.
"""

import base64
import re
from dataclasses import dataclass

from sso.accounts.model import User
from sso.accounts.users import UserStore
from sso.core.encryption import Keyring
from sso.core.ids import secret_token
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement

COOKIE_S = 400 * 86400  # browsers keep no cookie for longer
FACTOR_S = 180 * 86400
MAX_ACCOUNTS = 5  # of one browser
MAX_FACTORS = 50  # of one user

EARLIER = "earlier"  # names all devices that have not signed in since everything was ended

# The name of the browser; for each account the ``valid_from`` of its user at the sign-in, and a MAC of all three.
_COOKIE = re.compile(rf"[A-Za-z0-9_-]{{43}}(?:\.[0-9]{{1,18}}~[A-Za-z0-9_-]{{43}}){{1,{MAX_ACCOUNTS}}}", re.ASCII)
_PURPOSE = "device cookie"

_KNOWN = Statement(
    """SELECT item.n, k.expires < now() + make_interval(secs => life - 86400) AS is_stale,
        extract(epoch FROM k.expires) - life < u.valid_from AS is_earlier
    FROM unnest(CAST(:digests AS bytea[]), CAST(:lives AS float[])) WITH ORDINALITY AS item (digest, life, n)
    JOIN known_factors k ON k.digest = item.digest JOIN users u ON u.user_id = k.user_id WHERE k.expires > now()"""
)
_REMEMBER = Statement(
    """WITH kept AS (
        INSERT INTO known_factors (digest, user_id, expires)
        SELECT :digest, user_id, now() + make_interval(secs => :life) FROM users
        WHERE user_id = :user_id AND valid_from = :valid_from FOR SHARE
        ON CONFLICT (digest) DO UPDATE SET expires = excluded.expires
    )
    DELETE FROM known_factors WHERE digest = ANY (ARRAY(
        SELECT digest FROM known_factors WHERE user_id = :user_id AND digest <> :digest
        ORDER BY expires DESC OFFSET :others FOR UPDATE SKIP LOCKED
    ))"""
)


@dataclass(frozen=True)
class FactorDevice:
    """A client that sent a factor, or none."""

    digest: bytes
    name: str  # as with browsers: "" if the device is not known
    is_to_be_remembered: bool


class KnownDevices:
    def __init__(self, database: Database, users: UserStore, keyring: Keyring) -> None:
        self._database = database
        self._users = users
        self._keyring = keyring
        self._known = Batch(database, _KNOWN)

    async def recognize_browser(self, account: str, cookie: str) -> str:
        """Returns the name of the device if its cookie has a MAC for this account, else ""."""
        name, entries = _parts(cookie)
        if not (own := [entry for entry in entries if self._is_for(account, name, entry)]):
            return ""
        user = await self._users.by_login(account)
        return name if user and any(_valid_from(entry) == user.valid_from for entry in own) else EARLIER

    def cookie_for(self, user: User, cookie: str) -> str:
        """Returns the cookie of a browser that has completed a sign-in, made from the one that it came with."""
        name, entries = _parts(cookie)
        name = name or secret_token()
        mac = self._keyring.mac(_PURPOSE, _text(name, user.login_key, user.valid_from))
        own = f"{user.valid_from}~{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
        others = [entry for entry in entries if not self._is_for(user.login_key, name, entry)]
        return ".".join([name, own, *others][: 1 + MAX_ACCOUNTS])

    async def recognize_factor(self, account: str, factor: str) -> FactorDevice:
        digest = self._factor_digest(account, factor)
        row = await self._known(digest, float(FACTOR_S)) if factor else None
        if row is None:
            return FactorDevice(digest, "", bool(factor))
        name = EARLIER if row["is_earlier"] else digest.hex()
        return FactorDevice(digest, name, row["is_stale"] or row["is_earlier"])

    async def remember(self, user: User, device: FactorDevice) -> None:
        """After a completed sign-in. Writes at most once a day for each factor; the oldest of too many end."""
        if device.is_to_be_remembered:
            await self._database.value(
                _REMEMBER,
                digest=device.digest,
                user_id=user.user_id,
                valid_from=user.valid_from,
                life=float(FACTOR_S),
                others=MAX_FACTORS - 1,
            )

    def _is_for(self, account: str, name: str, entry: str) -> bool:
        mac = base64.urlsafe_b64decode(entry.partition("~")[2] + "=")
        return self._keyring.is_mac(mac, _PURPOSE, _text(name, account, _valid_from(entry)))

    def _factor_digest(self, account: str, factor: str) -> bytes:
        return self._keyring.mac("known factor", f"{account}:{factor}")


def _parts(cookie: str) -> tuple[str, list[str]]:
    if not _COOKIE.fullmatch(cookie):
        return "", []
    name, *entries = cookie.split(".")
    return name, entries


def _valid_from(entry: str) -> int:
    return int(entry.partition("~")[0])


def _text(name: str, account: str, valid_from: int) -> str:
    return f"{name}:{valid_from}:{account}"
