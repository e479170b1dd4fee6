"""The store of game sessions: create, find, close, and the changes that the browser makes.

This file has more than 300 lines because its statements have many columns.
"""

from typing import Any

import orjson
import trio
from msgspec import Struct
from msgspec.structs import asdict

from sso.accounts.model import LoginOptions, User
from sso.bus.bus import Bus
from sso.core.ban import Ban
from sso.core.errors import Unauthorized
from sso.core.ids import digest
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.model import GameSessionData, LinkValues, SessionSnapshot
from sso.gsid.topics import publish_poll, publish_socket
from sso.telemetry.counters import LOGINS

NO_VALUES = LinkValues()
DELETED_AFTER_S = 600  # a row is deleted this long after the latest possible end of its session
RETENTION = "interval '10 minutes'"  # an ended session is still found, so that its client gets a precise error

# Columns of a row `s` for SessionSnapshot and GameSessionData.
SNAPSHOT_COLUMNS = """s.status, s.ends > now() AS alive, s.poll AS newest_poll, s.cancels, s.ban,
    CAST(floor(extract(epoch FROM s.created)) AS bigint) AS started,
    CAST(coalesce(floor(extract(epoch FROM s.last_seen)), 0) AS bigint) AS last_seen,
    CAST(floor(extract(epoch FROM now())) AS bigint) AS ts"""
SESSION_COLUMNS = """s.gsid, s.location, s.match, s.address, s.public_key, s.distr, s.factor, s.jwt_public_key,
    s.app_id, s.gapp_id, s.nojwt, s.short_token, s.fixed_ips, s.with_meta, s.with_email, s.meta_given, s.bound_apps,
    s.client_id, s.scopes, s.link_guest, s.linked"""
# The workers to wake after a change of a row `s`; NULL if there is none, '' if it is not known, which means all. The
# previous release polls and connects without naming its worker.
POLL_WORKER = """CASE WHEN s.held_until > now() THEN
    CASE WHEN split_part(s.poll_holder, '@', 1) = CAST(s.poll AS text) THEN split_part(s.poll_holder, '@', 2)
    ELSE '' END END"""
SOCKET_WORKER = "split_part(s.socket, '@', 2)"
_WORKERS = f"{POLL_WORKER} AS poll_worker, {SOCKET_WORKER} AS socket_worker"

# Early polls block a client by its key if it signs, otherwise by its address. A public key is no secret: a client that
# registers the key of another one and polls with other evidence must not get that key blocked. The session of a device
# is not found: its client polls at the token endpoint.
_FIND = BatchStatement(
    f"""SELECT item.n, {SESSION_COLUMNS}, {SNAPSHOT_COLUMNS}, s.state, (
        SELECT t.blocked_until > now() FROM throttle t
        WHERE t.key = CASE WHEN item.signs AND s.public_key IS NOT NULL THEN sha256(s.public_key)
            ELSE item.early_poll_key END
        ) IS TRUE AS blocked
    FROM {{items}}
    LEFT JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        AND s.ends > now() - {RETENTION} AND s.client_id IS NULL""",
    columns={"gsid": "text", "early_poll_key": "bytea", "signs": "boolean"},
)
_CREATE = BatchStatement(
    f"""WITH item AS (
        SELECT * FROM {{items}}
    ), locked_guests AS ( -- the guests to link, in key order
        SELECT item.n FROM item JOIN users u ON {by_index("u.user_id", "item.link_guest")}
        ORDER BY item.link_guest FOR KEY SHARE OF u {{if_locked}}
    ), new_items AS (
        SELECT * FROM item WHERE link_guest IS NULL OR n IN (SELECT n FROM locked_guests)
    ), created AS (
        INSERT INTO game_sessions (gsid, location, match, address, public_key, distr, factor, jwt_public_key, app_id,
            gapp_id, nojwt, short_token, fixed_ips, with_meta, with_email, meta_given, link_guest, link_sign_in,
            ends, expires)
        SELECT gsid, location, match, address, public_key, distr, factor, jwt_public_key, app_id,
            gapp_id, nojwt, short_token, string_to_array(fixed_ips, ','), with_meta, with_email, meta_given,
            link_guest, link_sign_in,
            now() + make_interval(secs => {{ttl_s}}), now() + make_interval(secs => {{kept_s}})
        FROM new_items
    )
    SELECT n, CAST(floor(extract(epoch FROM now())) AS bigint) AS created FROM new_items""",
    columns={
        "gsid": "text",
        "location": "bytea",
        "match": "text",
        "address": "text",
        "public_key": "bytea",
        "distr": "text",
        "factor": "text",
        "jwt_public_key": "text",
        "app_id": "int",
        "gapp_id": "int",
        "nojwt": "boolean",
        "short_token": "boolean",
        "fixed_ips": "text",
        "with_meta": "boolean",
        "with_email": "boolean",
        "meta_given": "boolean",
        "link_guest": "text",
        "link_sign_in": "text",
    },
)
# If a batch has several requests to close a session, the last one sets the state, and all of them get a row.
_CLOSE = BatchStatement(
    f"""WITH locked AS ( -- the sessions, unless they had expired, in key order
        SELECT item.n, item.state, s.gsid FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        WHERE s.ends > now() OR s.status NOT IN ('pending', 'confirmed') ORDER BY item.gsid FOR UPDATE OF s
    ), closed AS ( -- one row per session
        UPDATE game_sessions s SET state = batched.state,
            status = CASE WHEN s.status IN ('pending', 'confirmed') THEN 'closed' ELSE s.status END
        FROM (
            SELECT gsid, array_agg(n) AS items, (array_agg(state ORDER BY n DESC))[1] AS state FROM locked GROUP BY gsid
        ) batched
        WHERE {by_index("s.gsid", "batched.gsid")} RETURNING batched.items, {_WORKERS}
    )
    SELECT n, poll_worker, socket_worker FROM closed, unnest(items) AS n""",
    columns={"gsid": "text", "state": "text"},
)
_PENDING = f"""SELECT item.* FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        WHERE s.status = 'pending' AND s.ends > now() ORDER BY item.gsid FOR UPDATE OF s"""
# If a batch has several decisions of one kind about a session, only one of them gets a row. The users are locked first,
# as in all statements that lock users and sessions.
_CONFIRM = BatchStatement(
    f"""WITH valid_items AS ( -- those whose user is as it was when it was read, in key order
        SELECT item.* FROM {{items}} JOIN users u ON {by_index("u.user_id", "item.user_id")}
        WHERE u.valid_from = item.valid_from AND NOT u.disabled ORDER BY item.user_id FOR KEY SHARE OF u {{if_locked}}
    ), locked AS ( -- those of them whose session is pending, in key order
        {_PENDING.replace("{items}", "valid_items item")}
    )
    UPDATE game_sessions s SET status = 'confirmed', stage = 'confirmed', user_id = locked.user_id,
        valid_from = locked.valid_from, auth_time = locked.auth_time, auth = locked.auth,
        app_id = CASE WHEN s.app_id = 0 THEN locked.app_id ELSE s.app_id END,
        gapp_id = CASE WHEN s.gapp_id = 0 THEN locked.gapp_id ELSE s.gapp_id END,
        distr = CASE WHEN s.distr = '' THEN locked.distr ELSE s.distr END,
        with_meta = s.with_meta OR (locked.meta AND NOT s.meta_given),
        bound_apps = CASE WHEN locked.app_id > 0 OR locked.gapp_id > 0 THEN ARRAY[s.app_id, s.gapp_id] END
    FROM locked
    WHERE {by_index("s.gsid", "locked.gsid")}
    RETURNING locked.n, {_WORKERS}""",
    columns={
        "gsid": "text",
        "user_id": "text",
        "valid_from": "bigint",
        "app_id": "int",
        "gapp_id": "int",
        "distr": "text",
        "meta": "boolean",
        "auth_time": "bigint",
        "auth": "text",
    },
)
_DENY = BatchStatement(
    f"""WITH locked AS ( -- the pending sessions, in key order
        {_PENDING}
    )
    UPDATE game_sessions s SET status = 'denied', stage = 'denied', ban = CAST(locked.ban AS jsonb) FROM locked
    WHERE {by_index("s.gsid", "locked.gsid")} RETURNING locked.n, {_WORKERS}""",
    columns={"gsid": "text", "ban": "text"},
)
# If a batch has several stages of a session, the last one is stored.
_SET_STAGE = BatchStatement(
    f"""WITH locked AS ( -- the sessions whose stage changes, in key order
        SELECT item.* FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        WHERE s.status = 'pending' AND s.ends > now() AND s.stage <> item.stage
            AND (item.stage <> 'opened' OR s.stage = '')
        ORDER BY item.gsid FOR UPDATE OF s
    )
    UPDATE game_sessions s SET stage = latest.stage
    FROM (SELECT DISTINCT ON (gsid) * FROM locked ORDER BY gsid, n DESC) latest
    WHERE {by_index("s.gsid", "latest.gsid")}
    RETURNING latest.n, NULL AS poll_worker, {SOCKET_WORKER} AS socket_worker""",
    columns={"gsid": "text", "stage": "text"},
)
_SET_VIEWER = Statement(
    """UPDATE game_sessions SET viewer = :user_id
    WHERE gsid = :gsid AND status = 'pending' AND viewer IS DISTINCT FROM :user_id"""
)
_READ_FOR_PAGE = BatchStatement(
    f"""SELECT item.n, {SESSION_COLUMNS}, {SNAPSHOT_COLUMNS}, s.state, s.user_id,
        coalesce(s.held_until > now() - interval '5 s', false)
            OR coalesce(s.last_seen > now() - interval '15 s', false) AS waiting
    FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        AND s.ends > now() - {RETENTION}""",
    columns={"gsid": "text"},
)


class SessionLookup(Struct, frozen=True):
    """The session that a request names, if it exists, and whether early polls have blocked the client."""

    blocked: bool
    session: GameSessionData | None
    snapshot: SessionSnapshot | None
    state: str


class SessionOnPage(Struct, frozen=True):
    """A session as the browser's page needs it."""

    session: GameSessionData
    snapshot: SessionSnapshot
    user_id: str | None  # the user who confirmed
    waiting: bool  # the game polled or sent a heartbeat a moment ago


class GameSessionStore:
    def __init__(self, database: Database, bus: Bus, ttl_s: int, max_s: int) -> None:
        self._bus = bus
        self._database = database
        self._lifetime_s = min(ttl_s, max_s)
        kept_s = float(max_s + DELETED_AFTER_S)
        self._create = SkipLockedBatch(database, _CREATE.substitute(ttl_s=float(self._lifetime_s), kept_s=kept_s))
        self._find = Batch(database, _FIND)
        self._read_for_page = Batch(database, _READ_FOR_PAGE)
        self._close = Batch(database, _CLOSE)
        self._confirm = SkipLockedBatch(database, _CONFIRM)
        self._deny = Batch(database, _DENY)
        self._set_stage = Batch(database, _SET_STAGE)

    async def create(
        self,
        gsid: str,
        secret: str,
        match: str,
        public_key: bytes | None,
        options: LoginOptions,
        link_guest: str | None = None,
        link_sign_in: str | None = None,
    ) -> tuple[int, int]:
        """Returns the creation time and the lifetime in seconds without any poll.

        Raises Unauthorized if the guest to link has been deleted.
        """
        row = await self._create(
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
            fixed_ips=",".join(options.fixed_ips),
            with_meta=options.meta,
            with_email=options.with_email,
            meta_given=options.meta_given,
            link_guest=link_guest,
            link_sign_in=link_sign_in,
        )
        if row is None:
            raise Unauthorized
        return row["created"], self._lifetime_s

    async def find(self, gsid: str, early_poll_key: bytes, *, signs: bool) -> SessionLookup:
        """``early_poll_key``: the counter of early polls from the client's address. ``signs``: it sent a signature."""
        row = await self._find(gsid=gsid, early_poll_key=early_poll_key, signs=signs)
        assert row is not None  # the statement returns a row for every item
        if row["gsid"] is None:
            return SessionLookup(row["blocked"], None, None, "")
        return SessionLookup(row["blocked"], GameSessionData.from_row(row), SessionSnapshot.from_row(row), row["state"])

    async def read_for_page(self, gsid: str) -> SessionOnPage | None:
        """Returns None if the session does not exist."""
        row = await self._read_for_page(gsid=gsid)
        if row is None:
            return None
        return SessionOnPage(
            GameSessionData.from_row(row), SessionSnapshot.from_row(row), row["user_id"], row["waiting"]
        )

    async def close(self, gsid: str, state: str) -> bool:
        """Ends the session; a delivered one stays delivered. Returns False, and does nothing, if it has expired."""
        return await self._change(self._close, gsid, state=state)

    async def confirm(
        self, gsid: str, user: User, values: LinkValues = NO_VALUES, auth_time: int | None = None, auth: str = ""
    ) -> bool:
        """Confirms the session for the user and fills its empty fields with the link's values.

        ``auth_time`` and ``auth``: when and how the user signed in to the browser. Returns False if the session
        is no longer pending or the user is no longer valid.
        """
        return await self._change(
            self._confirm,
            gsid,
            user_id=user.user_id,
            valid_from=user.valid_from,
            app_id=values.app_id,
            gapp_id=values.gapp_id,
            distr=values.distr,
            meta=values.meta,
            auth_time=auth_time,
            auth=auth,
        )

    async def deny(self, gsid: str, ban: Ban | None = None) -> bool:
        """Returns False if the session is no longer pending. The game is told about the ``ban`` that is the reason."""
        is_denied = await self._change(self._deny, gsid, ban=orjson.dumps(asdict(ban)).decode() if ban else None)
        if is_denied:
            LOGINS.add("game", "denied")
        return is_denied

    async def set_stage(self, gsid: str, stage: str) -> bool:
        """Stores the progress of the browser, which the game can display. Returns whether it has changed."""
        return await self._change(self._set_stage, gsid, stage=stage)

    async def set_viewer(self, gsid: str, user: User) -> None:
        """Stores to whose browser the page is shown, so that a ban of this user ends the session."""
        await self._database.value(_SET_VIEWER, gsid=gsid, user_id=user.user_id)

    async def _change(self, change: Batch | SkipLockedBatch, gsid: str, **values: Any) -> bool:
        """Changes the session and then wakes its poll and its socket. Returns whether the session has changed."""
        with trio.CancelScope(shield=True):  # otherwise a browser that leaves could change it and wake nothing
            row = await change(gsid=gsid, **values)
        if row is None:
            return False
        publish_poll(self._bus, gsid, row["poll_worker"])
        publish_socket(self._bus, gsid, row["socket_worker"])
        return True
