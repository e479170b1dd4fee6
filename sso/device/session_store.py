"""The sessions of devices: rows of game sessions with an OAuth client in place of an application."""

import re
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from sso.core.ids import SECRET_TOKEN, digest, secret_token
from sso.core.net import Address
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.match_code import new_match_code
from sso.gsid.session_store import DELETED_AFTER_S, RETENTION

# Consonants: the codes spell no words, and no letter looks like a digit (RFC 8628 section 6.1).
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
LENGTH = 8
MAX_TYPED = 64
_SEPARATORS = re.compile(r"[\s\-\u2010-\u2015_.]+")

INTERVAL_S = 5  # between two requests of a device (RFC 8628 section 3.5), and what `slow_down` adds to it
TOLERANCE_S = 0.2  # a request may come this much before its time, because clocks and networks vary
_DEVICE_CODE = re.compile(rf"([0-9a-f-]{{36}})\.({SECRET_TOKEN})", re.ASCII)

# The endpoints of games, also in the previous release, find no proof for this session: nothing can be signed with
# an empty key, and `location` is not the digest of the secret alone.
_CREATE = Statement(
    """INSERT INTO game_sessions (gsid, location, match, address, public_key, client_id, scopes, user_code, interval_s,
        ends, expires)
    VALUES (:gsid, :location, :match, :address, '', :client_id, :scopes, :user_code, :interval_s,
        now() + make_interval(secs => :lifetime_s), now() + make_interval(secs => :kept_s))
    ON CONFLICT (user_code) WHERE client_id IS NOT NULL DO NOTHING RETURNING gsid"""
)
_FIND_BY_USER_CODE = Statement(
    """SELECT gsid FROM game_sessions
    WHERE user_code = :user_code AND client_id IS NOT NULL AND status = 'pending' AND ends > now()"""
)
# Counts and judges a request in one statement. A request that is held does not count.
_COUNT_REQUEST = Statement(
    f"""WITH locked AS (
        SELECT gsid, NOT CAST(:held AS boolean) AND status = 'pending' AND coalesce(
            polled_at > now() - make_interval(secs => interval_s - {TOLERANCE_S}), false) AS early
        FROM game_sessions WHERE gsid = :gsid AND location = :location AND client_id = :client_id
            AND ends > now() - {RETENTION} FOR UPDATE
    )
    UPDATE game_sessions s SET polled_at = CASE WHEN :held THEN s.polled_at ELSE now() END,
        interval_s = s.interval_s + CASE WHEN locked.early THEN {INTERVAL_S} ELSE 0 END
    FROM locked WHERE s.gsid = locked.gsid RETURNING locked.early"""
)
_SLOW_DOWN = Statement(f"UPDATE game_sessions SET interval_s = interval_s + {INTERVAL_S} WHERE gsid = :gsid")


def new_user_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def format_user_code(user_code: str) -> str:
    """Returns the code as people see it, with a dash in the middle."""
    return f"{user_code[: LENGTH // 2]}-{user_code[LENGTH // 2 :]}"


def parse_user_code(typed: str) -> str | None:
    """Returns the code that was typed, in any case and with or without dashes and spaces, or None if it is no code."""
    if len(typed) > MAX_TYPED or not (text := _SEPARATORS.sub("", typed)).isascii():
        return None
    user_code = text.upper()
    return user_code if len(user_code) == LENGTH and set(user_code) <= set(LETTERS) else None


@dataclass(frozen=True)
class DeviceSession:
    gsid: str
    secret: str = field(repr=False)
    user_code: str = field(repr=False)
    match: str

    @property
    def device_code(self) -> str:
        return f"{self.gsid}.{self.secret}"


class DeviceSessionStore:
    def __init__(self, database: Database, lifetime_s: int) -> None:
        self._database = database
        self.lifetime_s = lifetime_s

    async def create(self, client_id: str, scopes: Sequence[str], address: Address) -> DeviceSession:
        while True:
            session = DeviceSession(str(uuid.uuid4()), secret_token(), new_user_code(), new_match_code())
            created = await self._database.value(
                _CREATE,
                gsid=session.gsid,
                location=_secret_digest(session.secret),
                match=session.match,
                address=str(address),
                client_id=client_id,
                scopes=list(scopes),
                user_code=session.user_code,
                interval_s=INTERVAL_S,
                lifetime_s=float(self.lifetime_s),
                kept_s=float(self.lifetime_s + DELETED_AFTER_S),
            )
            if created is not None:  # otherwise another session has the same user code
                return session

    async def find_by_user_code(self, user_code: str) -> str | None:
        """Returns the gsid of the pending session with this code, or None if there is none."""
        gsid: str | None = await self._database.value(_FIND_BY_USER_CODE, user_code=user_code)
        return gsid

    async def count_request(self, device_code: str, client_id: str, *, held: bool) -> tuple[str, bool] | None:
        """Returns the gsid, and whether the request came too early. An early request makes the interval longer.

        Returns None if the client has no session with this device code.
        """
        match = _DEVICE_CODE.fullmatch(device_code)
        if match is None:
            return None
        gsid, location = match[1], _secret_digest(match[2])
        row = await self._database.row(_COUNT_REQUEST, gsid=gsid, location=location, client_id=client_id, held=held)
        return (gsid, row["early"]) if row else None

    async def slow_down(self, gsid: str) -> None:
        """Makes the interval of the session longer."""
        await self._database.value(_SLOW_DOWN, gsid=gsid)


def _secret_digest(secret: str) -> bytes:
    return digest(f"device:{secret}")
