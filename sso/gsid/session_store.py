"""The store of game sessions: create, find, close, and the changes that the browser makes."""

from dataclasses import dataclass
from typing import Any

from sso.accounts.model import LoginOptions, User
from sso.bus.bus import Bus
from sso.core.ids import digest
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.model import GameSessionData, LinkValues, SessionSnapshot
from sso.gsid.topics import publish_poll, publish_socket

NO_VALUES = LinkValues()
DELETED_AFTER_S = 600  # a row is deleted this long after the latest possible end of its session
# An ended session is still found for this time, so that its client gets a precise error.
RETENTION = "interval '10 minutes'"

# Columns of a row `s` for SessionSnapshot and GameSessionData.
SNAPSHOT_COLUMNS = """s.status, s.ends > now() AS alive, s.poll AS newest_poll, s.cancels,
    CAST(floor(extract(epoch FROM s.created)) AS bigint) AS started,
    CAST(coalesce(floor(extract(epoch FROM s.last_seen)), 0) AS bigint) AS last_seen,
    CAST(floor(extract(epoch FROM now())) AS bigint) AS ts"""
SESSION_COLUMNS = """s.gsid, s.location, s.match, s.address, s.public_key, s.distr, s.factor, s.jwt_public_key,
    s.app_id, s.gapp_id, s.nojwt, s.short_token, s.fixed_ips, s.with_meta, s.with_email, s.meta_given, s.bound_apps"""
# The workers to wake after a change of a row `s`; NULL if there is none, '' if it is not known, which means all. The
# previous release polls and connects without naming its worker.
POLL_WORKER = """CASE WHEN s.held_until > now() THEN
    CASE WHEN split_part(s.poll_holder, '@', 1) = CAST(s.poll AS text) THEN split_part(s.poll_holder, '@', 2)
    ELSE '' END END"""
SOCKET_WORKER = "split_part(s.socket, '@', 2)"
_WORKERS = f"{POLL_WORKER} AS poll_worker, {SOCKET_WORKER} AS socket_worker"

# Early polls block a client by its key if it signs, otherwise by its address. A public key is no secret: a client that
# registers the key of another one and polls with other evidence must not get that key blocked.
_FIND = BatchStatement(
    f"""SELECT item.n, {SESSION_COLUMNS}, {SNAPSHOT_COLUMNS}, s.state, (
        SELECT t.blocked_until > now() FROM throttle t
        WHERE t.key = CASE WHEN item.signs AND s.public_key IS NOT NULL THEN sha256(s.public_key)
            ELSE item.early_poll_key END
        ) IS TRUE AS blocked
    FROM {{items}}
    LEFT JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid])
        AND s.ends > now() - {RETENTION}""",  # noqa: S608 - fixed texts
    columns={"gsid": "text", "early_poll_key": "bytea", "signs": "boolean"},
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
    f"""UPDATE game_sessions s SET state = :state,
        status = CASE WHEN status IN ('pending', 'confirmed') THEN 'closed' ELSE status END
    WHERE gsid = :gsid AND (ends > now() OR status NOT IN ('pending', 'confirmed'))
    RETURNING {_WORKERS}"""  # noqa: S608 - fixed texts
)
_CONFIRM = Statement(
    f"""UPDATE game_sessions s SET status = 'confirmed', stage = 'confirmed', user_id = u.user_id,
        valid_from = u.valid_from,
        app_id = CASE WHEN s.app_id = 0 THEN :app_id ELSE s.app_id END,
        gapp_id = CASE WHEN s.gapp_id = 0 THEN :gapp_id ELSE s.gapp_id END,
        distr = CASE WHEN s.distr = '' THEN :distr ELSE s.distr END,
        with_meta = s.with_meta OR (:meta AND NOT s.meta_given),
        bound_apps = CASE WHEN :app_id > 0 OR :gapp_id > 0 THEN ARRAY[s.app_id, s.gapp_id] END
    FROM users u
    WHERE s.gsid = :gsid AND s.status = 'pending' AND s.ends > now()
        AND u.user_id = :user_id AND u.valid_from = :valid_from AND NOT u.disabled
    RETURNING {_WORKERS}"""  # noqa: S608 - fixed texts
)
_DENY = Statement(
    f"""UPDATE game_sessions s SET status = 'denied', stage = 'denied'
    WHERE gsid = :gsid AND status = 'pending' AND ends > now()
    RETURNING {_WORKERS}"""  # noqa: S608 - fixed texts
)
_SET_STAGE = Statement(
    f"""UPDATE game_sessions s SET stage = :stage
    WHERE gsid = :gsid AND status = 'pending' AND ends > now() AND stage <> :stage
        AND (:stage <> 'opened' OR stage = '')
    RETURNING NULL AS poll_worker, {SOCKET_WORKER} AS socket_worker"""  # noqa: S608 - fixed texts
)
_READ_FOR_PAGE = Statement(
    f"""SELECT {SESSION_COLUMNS}, {SNAPSHOT_COLUMNS}, s.state, s.user_id,
        coalesce(s.held_until > now() - interval '5 s', false)
            OR coalesce(s.last_seen > now() - interval '15 s', false) AS waiting
    FROM game_sessions s WHERE s.gsid = :gsid AND s.ends > now() - {RETENTION}"""  # noqa: S608 - fixed texts
)


@dataclass(frozen=True)
class SessionLookup:
    """The session that a request names, if it exists, and whether early polls have blocked the client."""

    blocked: bool
    session: GameSessionData | None
    snapshot: SessionSnapshot | None
    state: str


@dataclass(frozen=True)
class SessionOnPage:
    """A session as the browser's page needs it."""

    session: GameSessionData
    snapshot: SessionSnapshot
    user_id: str | None  # the user who confirmed
    waiting: bool  # the game polled or sent a heartbeat a moment ago


class GameSessionStore:
    def __init__(self, database: Database, bus: Bus, ttl_s: int, max_s: int) -> None:
        self._database = database
        self._bus = bus
        self._ttl_s = ttl_s
        self._max_s = max_s
        self._find = Batch(database, _FIND)

    async def create(
        self, gsid: str, secret: str, match: str, public_key: bytes | None, options: LoginOptions
    ) -> tuple[int, int]:
        """Returns the creation time and the lifetime in seconds without any poll."""
        lifetime_s = min(self._ttl_s, self._max_s)
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
            ttl=float(lifetime_s),
            kept=float(self._max_s + DELETED_AFTER_S),
        )
        return created, lifetime_s

    async def find(self, gsid: str, early_poll_key: bytes, *, signs: bool) -> SessionLookup:
        """``early_poll_key``: the counter of early polls from the client's address. ``signs``: it sent a signature."""
        row = await self._find(gsid=gsid, early_poll_key=early_poll_key, signs=signs)
        assert row is not None  # the statement returns a row for every item
        if row["gsid"] is None:
            return SessionLookup(row["blocked"], None, None, "")
        return SessionLookup(row["blocked"], GameSessionData.from_row(row), SessionSnapshot.from_row(row), row["state"])

    async def read_for_page(self, gsid: str) -> SessionOnPage | None:
        """Returns None if the session does not exist."""
        row: Any = await self._database.row(_READ_FOR_PAGE, gsid=gsid)
        if row is None:
            return None
        return SessionOnPage(
            GameSessionData.from_row(row), SessionSnapshot.from_row(row), row["user_id"], row["waiting"]
        )

    async def close(self, gsid: str, state: str) -> bool:
        """Ends the session; a delivered one stays delivered. Returns False, and does nothing, if it has expired."""
        return await self._change(_CLOSE, gsid, state=state)

    async def confirm(self, gsid: str, user: User, values: LinkValues = NO_VALUES) -> bool:
        """Confirms the session for the user and fills its empty fields with the link's values.

        Returns False if the session is no longer pending or the user is no longer valid.
        """
        return await self._change(
            _CONFIRM,
            gsid,
            user_id=user.user_id,
            valid_from=user.valid_from,
            app_id=values.app_id,
            gapp_id=values.gapp_id,
            distr=values.distr,
            meta=values.meta,
        )

    async def deny(self, gsid: str) -> bool:
        """Returns False if the session is no longer pending."""
        return await self._change(_DENY, gsid)

    async def set_stage(self, gsid: str, stage: str) -> None:
        """Stores the progress of the browser, which the game can display."""
        await self._change(_SET_STAGE, gsid, stage=stage)

    async def _change(self, statement: Statement, gsid: str, **values: Any) -> bool:
        """Runs the statement and then wakes the session's poll and socket. Returns whether it changed the session."""
        row = await self._database.row(statement, gsid=gsid, **values)
        if row is None:
            return False
        publish_poll(self._bus, gsid, row["poll_worker"])
        publish_socket(self._bus, gsid, row["socket_worker"])
        return True
