"""Game sessions in the database: making one, finding it, closing it, and what the browser does to it."""

from dataclasses import dataclass
from typing import Any

from sso.accounts.model import LoginOptions, User
from sso.core.ids import digest
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.model import Filled, GameSessionData, SessionStatus

NOTHING_FILLED = Filled()
REMEMBERED = "interval '10 minutes'"  # an ended session, so that its own client is told

# What every reader of a row `s` takes of it.
STANDING = """s.status, s.ends > now() AS alive, s.poll, s.cancels,
    CAST(floor(extract(epoch FROM s.created)) AS bigint) AS started,
    CAST(coalesce(floor(extract(epoch FROM s.last_seen)), 0) AS bigint) AS last_seen,
    CAST(floor(extract(epoch FROM now())) AS bigint) AS ts"""
FACTS = """s.gsid, s.location, s.match, s.address, s.public_key, s.distr, s.factor, s.jwt_public_key, s.app_id,
    s.gapp_id, s.nojwt, s.short_token, s.fixed_ips, s.with_meta, s.with_email, s.meta_given, s.bound_apps"""
TELL_POLL = "pg_notify('sso', 'poll:' || gsid)"
TELL_SOCKET = "pg_notify('sso', 'socket:' || gsid)"
TELL = "pg_notify('sso', 'poll:' || gsid || E'\\nsocket:' || gsid)"

# For early polls a client that signs is blocked by its key, any other by its address: a key is public, and whoever
# registers the key of somebody else, and polls by other evidence, must not have it blocked.
_FIND = Statement(
    f"""SELECT item.n, {FACTS}, {STANDING}, s.state, (
        SELECT t.blocked_until > now() FROM throttle t
        WHERE t.key = CASE WHEN item.signs AND s.public_key IS NOT NULL THEN sha256(s.public_key) ELSE item.early END
        ) IS TRUE AS blocked
    FROM unnest(CAST(:gsids AS text[]), CAST(:early AS bytea[]), CAST(:signs AS boolean[]))
        WITH ORDINALITY AS item (gsid, early, signs, n)
    LEFT JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid]) AND s.ends > now() - {REMEMBERED}"""  # noqa: S608 - the parts are ours
)
_CREATE = Statement(
    """INSERT INTO game_sessions (gsid, location, match, address, public_key, distr, factor, jwt_public_key, app_id,
        gapp_id, nojwt, short_token, fixed_ips, with_meta, with_email, meta_given, ends, expires)
    VALUES (:gsid, :location, :match, :address, :public_key, :distr, :factor, :jwt_public_key, :app_id,
        :gapp_id, :nojwt, :short_token, :fixed_ips, :with_meta, :with_email, :meta_given,
        now() + make_interval(secs => :ttl), now() + make_interval(secs => :kept))
    RETURNING CAST(floor(extract(epoch FROM created)) AS bigint)"""
)
_CLOSE = Statement(
    f"""WITH done AS (
        UPDATE game_sessions SET state = :state,
            status = CASE WHEN status IN ('pending', 'confirmed') THEN 'closed' ELSE status END
        WHERE gsid = :gsid AND (ends > now() OR status NOT IN ('pending', 'confirmed')) RETURNING gsid
    ) SELECT gsid, {TELL} FROM done"""  # noqa: S608 - the parts are ours
)
_CONFIRM = Statement(
    f"""WITH done AS (
        UPDATE game_sessions s SET status = 'confirmed', stage = 'confirmed', user_id = u.user_id,
            valid_from = u.valid_from,
            app_id = CASE WHEN s.app_id = 0 THEN :app_id ELSE s.app_id END,
            gapp_id = CASE WHEN s.gapp_id = 0 THEN :gapp_id ELSE s.gapp_id END,
            distr = CASE WHEN s.distr = '' THEN :distr ELSE s.distr END,
            with_meta = s.with_meta OR (:meta AND NOT s.meta_given),
            bound_apps = CASE WHEN :app_id > 0 OR :gapp_id > 0 THEN ARRAY[s.app_id, s.gapp_id] END
        FROM users u
        WHERE s.gsid = :gsid AND s.status = 'pending' AND s.ends > now()
            AND u.user_id = :user_id AND u.valid_from = :valid_from AND NOT u.disabled
        RETURNING s.gsid
    ) SELECT gsid, {TELL} FROM done"""  # noqa: S608 - the parts are ours
)
_DENY = Statement(
    f"""WITH done AS (
        UPDATE game_sessions SET status = 'denied', stage = 'denied'
        WHERE gsid = :gsid AND status = 'pending' AND ends > now() RETURNING gsid
    ) SELECT gsid, {TELL} FROM done"""  # noqa: S608 - the parts are ours
)
_REACH = Statement(
    f"""WITH done AS (
        UPDATE game_sessions SET stage = :stage
        WHERE gsid = :gsid AND status = 'pending' AND ends > now() AND stage <> :stage
            AND (:stage <> 'opened' OR stage = '') RETURNING gsid
    ) SELECT gsid, {TELL_SOCKET} FROM done"""  # noqa: S608 - the parts are ours
)
_SHOW = Statement(
    f"""SELECT {FACTS}, {STANDING}, s.state, s.user_id,
        coalesce(s.held_until > now() - interval '5 s', false)
            OR coalesce(s.last_seen > now() - interval '15 s', false) AS waiting
    FROM game_sessions s WHERE s.gsid = :gsid AND s.ends > now() - {REMEMBERED}"""  # noqa: S608 - the parts are ours
)


@dataclass(frozen=True)
class FoundSession:
    """Of a request about a session: the session, if there is one, and whether the client is blocked for early polls."""

    blocked: bool
    facts: GameSessionData | None
    standing: SessionStatus | None
    state: str


@dataclass(frozen=True)
class ShownSession:
    """A session as the browser's page sees it."""

    facts: GameSessionData
    standing: SessionStatus
    user_id: str | None  # who confirmed
    waiting: bool  # the game was heard of a moment ago


class GameSessionStore:
    def __init__(self, database: Database, ttl_s: int, max_s: int) -> None:
        self._database = database
        self._ttl_s = ttl_s
        self._max_s = max_s
        self._find = Batch(database, _FIND)

    async def create(
        self, gsid: str, secret: str, match: str, public_key: bytes | None, options: LoginOptions
    ) -> tuple[int, int]:
        """When it was made, and how many seconds it lives if nobody polls."""
        life = min(self._ttl_s, self._max_s)
        created: int = await self._database.value(
            _CREATE,
            gsid=gsid,
            location=digest(secret),
            match=match,
            address=str(options.address),
            public_key=public_key,
            distr=options.distr,
            factor=options.factor,
            jwt_public_key=options.jwt_public_key,
            app_id=options.app_id,
            gapp_id=options.gapp_id,
            nojwt=options.nojwt,
            short_token=options.short_token,
            fixed_ips=list(options.fixed_ips),
            with_meta=options.meta,
            with_email=options.with_email,
            meta_given=options.meta_given,
            ttl=float(life),
            kept=float(self._max_s + 600),
        )
        return created, life

    async def find(self, gsid: str, early: bytes, *, signs: bool) -> FoundSession:
        """``early``: under which early polls of the client's address are counted."""
        row = await self._find(gsid, early, signs)
        assert row is not None  # there is one for every item
        if row["gsid"] is None:
            return FoundSession(row["blocked"], None, None, "")
        return FoundSession(row["blocked"], GameSessionData.from_row(row), SessionStatus.from_row(row), row["state"])

    async def show(self, gsid: str) -> ShownSession | None:
        row: Any = await self._database.row(_SHOW, gsid=gsid)
        if row is None:
            return None
        return ShownSession(GameSessionData.from_row(row), SessionStatus.from_row(row), row["user_id"], row["waiting"])

    async def close(self, gsid: str, state: str) -> bool:
        """Ends the session; a delivered one stays delivered. Returns False, and does nothing, if it has expired."""
        return await self._database.value(_CLOSE, gsid=gsid, state=state) is not None

    async def confirm(self, gsid: str, user: User, filled: Filled = NOTHING_FILLED) -> bool:
        """False if somebody was first, or it has ended, or the user has. Fields that are not empty stay as they are."""
        found = await self._database.value(
            _CONFIRM,
            gsid=gsid,
            user_id=user.user_id,
            valid_from=user.valid_from,
            app_id=filled.app_id,
            gapp_id=filled.gapp_id,
            distr=filled.distr,
            meta=filled.meta,
        )
        return found is not None

    async def deny(self, gsid: str) -> bool:
        return await self._database.value(_DENY, gsid=gsid) is not None

    async def reach(self, gsid: str, stage: str) -> None:
        """For the game's own screen: how far the browser is."""
        await self._database.value(_REACH, gsid=gsid, stage=stage)
