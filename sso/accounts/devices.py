"""Known devices: browsers and game clients that have completed a sign-in to an account before.

A known device is no credential. Its failed attempts are counted on their own, so that strangers who guess at the
account cannot lock it out. A browser shows a cookie that names it and has a MAC for each account; a game client shows
the ``factor`` with which it has signed in.
"""

import base64
import re
from dataclasses import dataclass

from sso.accounts.model import User
from sso.core.ids import secret_token
from sso.core.sealed import Keyring
from sso.db.batch import Batch
from sso.db.bridge import Database
from sso.db.statement import Statement

COOKIE_S = 400 * 86400  # browsers keep no cookie for longer
FACTOR_S = 180 * 86400
MAX_ACCOUNTS = 5  # of one browser
MAX_FACTORS = 50  # of one user

_COOKIE = re.compile(rf"[A-Za-z0-9_-]{{43}}(?:\.[A-Za-z0-9_-]{{43}}){{1,{MAX_ACCOUNTS}}}", re.ASCII)
_PURPOSE = "device cookie"

_KNOWN = Statement(
    """SELECT item.n, k.expires < now() + make_interval(secs => life - 86400) AS is_stale
    FROM unnest(CAST(:digests AS bytea[]), CAST(:lives AS float[])) WITH ORDINALITY AS item (digest, life, n)
    JOIN known_factors k ON k.digest = item.digest WHERE k.expires > now()"""
)
_REMEMBER = Statement(
    """WITH kept AS (
        INSERT INTO known_factors (digest, user_id, expires)
        VALUES (:digest, :user_id, now() + make_interval(secs => :life))
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
    is_known: bool
    is_to_be_remembered: bool

    @property
    def name(self) -> str:
        """As with browsers: "" if the device is not known."""
        return self.digest.hex() if self.is_known else ""


class Devices:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring
        self._known = Batch(database, _KNOWN)

    def known_browser(self, account: str, cookie: str) -> str:
        """Returns the name of the device if its cookie has a MAC for this account, else ""."""
        name, macs = _parts(cookie)
        return name if any(self._is_for(account, name, mac) for mac in macs) else ""

    def cookie_for(self, account: str, cookie: str) -> str:
        """Returns the cookie of a browser that has completed a sign-in, made from the one that it came with."""
        name, macs = _parts(cookie)
        if not any(self._is_for(account, name, mac) for mac in macs):
            name = name or secret_token()
            own = base64.urlsafe_b64encode(self._keyring.mac(_PURPOSE, f"{name}:{account}")).decode().rstrip("=")
            macs = [own, *macs][:MAX_ACCOUNTS]
        return ".".join([name, *macs])

    async def known_factor(self, account: str, factor: str) -> FactorDevice:
        digest = self._factor_digest(account, factor)
        row = await self._known(digest, float(FACTOR_S)) if factor else None
        return FactorDevice(digest, row is not None, bool(factor) and (row is None or row["is_stale"]))

    async def remember(self, user: User, device: FactorDevice) -> None:
        """After a completed sign-in. Writes at most once a day for each factor; the oldest of too many end."""
        if device.is_to_be_remembered:
            await self._database.value(
                _REMEMBER, digest=device.digest, user_id=user.user_id, life=float(FACTOR_S), others=MAX_FACTORS - 1
            )

    def _is_for(self, account: str, name: str, mac: str) -> bool:
        return self._keyring.is_mac(base64.urlsafe_b64decode(mac + "="), _PURPOSE, f"{name}:{account}")

    def _factor_digest(self, account: str, factor: str) -> bytes:
        return self._keyring.mac("known factor", f"{account}:{factor}")


def _parts(cookie: str) -> tuple[str, list[str]]:
    if not _COOKIE.fullmatch(cookie):
        return "", []
    name, *macs = cookie.split(".")
    return name, macs
