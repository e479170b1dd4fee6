"""Browser sessions, and logins that still owe their second factor. Cookies hold the secret, the database its digest."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sso.accounts.errors import InvalidCredentials
from sso.accounts.issue_guard import guarded_by_user
from sso.accounts.model import User
from sso.core.ids import digest, record_id, secret_token
from sso.core.net import Address
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement

CHALLENGE_S = 600
MAX_SESSIONS = 50  # of one user; the oldest end

_LOOK_UP = Statement(
    """SELECT item.n, u.*, s.id, s.created, s.last_seen, s.auth, s.last_seen < now() - interval '1 minute' AS stale
    FROM unnest(CAST(:digests AS bytea[])) WITH ORDINALITY AS item (digest, n)
    JOIN browser_sessions s ON s.digest = item.digest JOIN users u ON u.user_id = s.user_id
    WHERE s.expires > now() AND NOT u.disabled"""
)
_TOUCH = Statement(
    """UPDATE browser_sessions SET last_seen = now(), address = :address
    WHERE id = :id AND last_seen < now() - interval '1 minute'"""
)
_REPLACE = Statement(
    """WITH ended AS (DELETE FROM browser_sessions WHERE digest = ANY (CAST(:digests AS bytea[])))
    DELETE FROM login_challenges WHERE digest = ANY (CAST(:digests AS bytea[]))"""
)
# A visit is mostly nothing but the name of a form. If somebody holds what it stood for, they are ending it.
_START = (
    """SELECT * FROM unnest(
            CAST(:user_ids AS text[]), CAST(:valid_from AS bigint[]), CAST(:digests AS bytea[]), CAST(:ids AS text[]),
            CAST(:lives AS float[]), CAST(:addresses AS text[]), CAST(:devices AS text[]), CAST(:auths AS text[]),
            CAST(:visits AS bytea[])
        ) WITH ORDINALITY AS item (user_id, valid_from, digest, id, life, address, device, auth, visit, n)""",
    """, replaced AS (
        SELECT digest FROM browser_sessions WHERE digest = ANY (ARRAY(SELECT visit FROM still_valid))
        FOR UPDATE SKIP LOCKED
    ), ended AS (
        DELETE FROM browser_sessions WHERE digest = ANY (ARRAY(SELECT digest FROM replaced))
    ), owed AS (
        SELECT digest FROM login_challenges WHERE digest = ANY (ARRAY(SELECT visit FROM still_valid))
        FOR UPDATE SKIP LOCKED
    ), finished AS (
        DELETE FROM login_challenges WHERE digest = ANY (ARRAY(SELECT digest FROM owed))
    ), started AS (
        INSERT INTO browser_sessions (digest, id, user_id, last_seen, expires, address, device, auth)
        SELECT digest, id, user_id, now(), now() + make_interval(secs => life), address, device, auth FROM still_valid
        RETURNING digest, created
    )
    SELECT n, started.created FROM still_valid JOIN started USING (digest)""",
)
# Runs after the new session is committed, so that the last of several concurrent sign-ins sees all of them.
_TRIM = Statement(
    f"""WITH old AS (
        SELECT s.digest FROM (SELECT DISTINCT user_id FROM unnest(CAST(:user_ids AS text[])) AS user_id) item,
        LATERAL (
            SELECT digest FROM browser_sessions WHERE user_id = ANY (ARRAY[item.user_id])
            ORDER BY created DESC, digest OFFSET {MAX_SESSIONS}
        ) s
    ), ended AS (
        DELETE FROM browser_sessions WHERE digest = ANY (ARRAY(
            SELECT digest FROM browser_sessions WHERE digest = ANY (ARRAY(SELECT digest FROM old))
            ORDER BY digest FOR UPDATE SKIP LOCKED
        ))
    )
    SELECT n FROM unnest(CAST(:user_ids AS text[])) WITH ORDINALITY AS item (user_id, n)"""  # noqa: S608 - a number
)
_LIST = Statement(
    """SELECT id, created, last_seen, address, device FROM browser_sessions
    WHERE user_id = :user_id AND expires > now() ORDER BY last_seen DESC LIMIT 100"""
)
_END = Statement("DELETE FROM browser_sessions WHERE user_id = :user_id AND id = :id RETURNING id")
_CHALLENGE = (
    """SELECT * FROM unnest(
            CAST(:user_ids AS text[]), CAST(:valid_from AS bigint[]), CAST(:digests AS bytea[]), CAST(:lives AS float[])
        ) WITH ORDINALITY AS item (user_id, valid_from, digest, life, n)""",
    """, challenged AS (
        INSERT INTO login_challenges (digest, user_id, expires)
        SELECT digest, user_id, now() + make_interval(secs => life) FROM still_valid
    )
    SELECT n FROM still_valid""",
)
_CHALLENGED = Statement(
    """SELECT u.* FROM login_challenges c JOIN users u USING (user_id)
    WHERE c.digest = :digest AND c.expires > now() AND NOT u.disabled"""
)
_DROP_CHALLENGE = Statement("DELETE FROM login_challenges WHERE digest = :digest")


@dataclass(frozen=True)
class Session:
    id: str
    user: User
    created: datetime
    auth: str
    secret: str


@dataclass(frozen=True)
class SessionLine:
    """A row of the account page."""

    id: str
    created: datetime
    last_seen: datetime
    address: str
    device: str


class SessionStore:
    def __init__(self, database: Database, life_s: int) -> None:
        self._database = database
        self._life_s = life_s
        self._look_up = Batch(database, _LOOK_UP)
        self._trim = Batch(database, _TRIM)
        self._start = guarded_by_user(database, *_START)
        self._challenge = guarded_by_user(database, *_CHALLENGE)

    async def look_up(self, secret: str, address: Address) -> Session | None:
        """Who this cookie is, if it is anybody: read from the database each time, so an ended session is ended."""
        row = await self._look_up(digest(secret))
        if row is None:
            return None
        if row["stale"]:
            await self._database.value(_TOUCH, id=row["id"], address=str(address))
        return Session(row["id"], User.from_row(row), row["created"], row["auth"], secret)

    async def start(
        self, user: User, auth: str, address: Address, device: str, *, session: str = "", visit: str = ""
    ) -> Session:
        """The cookies that the browser came with are worth nothing any more."""
        if session:  # by itself: it may have to wait for whoever is ending it
            await self._database.value(_REPLACE, digests=[digest(old) for old in (session, visit) if old])
        secret, session_id = secret_token(), record_id()
        started = await self._start(
            user.user_id,
            user.valid_from,
            digest(secret),
            session_id,
            float(self._life_s),
            str(address),
            device,
            auth,
            digest(visit) if visit else None,
        )
        if started is None:
            raise InvalidCredentials
        await self._trim(user.user_id)
        return Session(session_id, user, started["created"], auth, secret)

    async def list(self, user_id: str) -> list[SessionLine]:
        return [SessionLine(**_values(row)) for row in await self._database.rows(_LIST, user_id=user_id)]

    async def end(self, user_id: str, session_id: str) -> bool:
        return await self._database.value(_END, user_id=user_id, id=session_id) is not None

    async def start_challenge(self, user: User) -> str:
        """The secret with which this browser, and only it, may give the second factor."""
        secret = secret_token()
        if not await self._challenge(user.user_id, user.valid_from, digest(secret), float(CHALLENGE_S)):
            raise InvalidCredentials
        return secret

    async def challenged_user(self, secret: str) -> User | None:
        row = await self._database.row(_CHALLENGED, digest=digest(secret))
        return User.from_row(row) if row else None

    async def drop_challenge(self, secret: str) -> None:
        await self._database.value(_DROP_CHALLENGE, digest=digest(secret))


def _values(row: Any) -> dict[str, Any]:
    return dict(row)
