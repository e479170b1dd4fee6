"""The store of sockets: a session has one current socket, whose heartbeats update last_seen."""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from sso.bus.bus import Bus
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.model import CONFIRMED, PENDING, SessionSnapshot
from sso.gsid.session_store import POLL_WORKER, SNAPSHOT_COLUMNS, SOCKET_WORKER
from sso.gsid.topics import publish_poll, publish_socket

# A socket with an address is authenticated here, as session_auth.py would: the session is bound to that address.
_ATTACH = BatchStatement(
    f"""WITH locked AS ( -- the sessions that have not ended, one row per socket
        SELECT item.n, item.socket, s.gsid, {SOCKET_WORKER} AS previous_worker
        FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        WHERE s.ends > now() AND s.status IN ('pending', 'confirmed') AND (item.address IS NULL OR (
            s.client_id IS NULL AND s.address = item.address
            AND (SELECT t.blocked_until > now() FROM throttle t WHERE t.key = item.early_poll_key) IS NOT TRUE))
        ORDER BY item.gsid FOR UPDATE OF s
    ), latest AS ( -- if a batch has several sockets of a session, the last one is current
        SELECT DISTINCT ON (gsid) gsid, socket FROM locked ORDER BY gsid, n DESC
    ), attached AS (
        UPDATE game_sessions s SET socket = latest.socket, last_seen = now() FROM latest
        WHERE {by_index("s.gsid", "latest.gsid")}
        RETURNING s.gsid, s.stage, s.socket, {SNAPSHOT_COLUMNS}
    )
    SELECT locked.n, locked.previous_worker, attached.*
    FROM locked JOIN attached ON attached.gsid = locked.gsid""",
    columns={"gsid": "text", "socket": "text", "address": "text", "early_poll_key": "bytea"},
)
_READ = BatchStatement(
    f"""SELECT item.n, s.stage, s.socket, {SNAPSHOT_COLUMNS}
    FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}""",
    columns={"gsid": "text"},
)
# Returns the time, and only the sessions that have changed: in another stage, ended, or with another socket. The lists
# are texts, because encoding three arrays takes as long as the rest. (string_to_array('') has no element.) What is not
# current is found by EXCEPT: PostgreSQL would compare each socket with each updated row to join them.
_HEARTBEAT = Statement(
    f"""WITH item AS ( -- in key order, in which the rows are locked
        SELECT gsid, socket, coalesce(stage, '') AS stage
        FROM unnest(string_to_array(:gsids, ','), string_to_array(:sockets, ','), string_to_array(:stages, ','))
            AS item (gsid, socket, stage)
        ORDER BY gsid
    ), updated AS ( -- the current sockets of open sessions
        UPDATE game_sessions s SET last_seen = now() FROM item
        WHERE {by_index("s.gsid", "item.gsid")}
            AND s.socket = item.socket AND s.ends > now() AND s.status IN ('pending', 'confirmed')
        RETURNING s.gsid, s.socket, s.stage
    ), changed AS (
        SELECT gsid, socket, stage FROM item EXCEPT SELECT gsid, socket, stage FROM updated
    )
    SELECT changed.socket AS heartbeat_of, s.gsid, s.stage, s.socket, {SNAPSHOT_COLUMNS}
    FROM (SELECT 1) AS always
    LEFT JOIN (changed LEFT JOIN game_sessions s ON {by_index("s.gsid", "changed.gsid")}) ON true"""
)
_CANCEL = Statement(
    f"""UPDATE game_sessions s SET socket = NULL, cancels = cancels + 1
    WHERE gsid = :gsid AND socket = :socket
    RETURNING {POLL_WORKER} AS poll_worker"""
)


class ConnectedSocket(Protocol):
    gsid: str
    socket_id: str
    stage: str  # that the client knows


class SocketHeartbeat(Struct, frozen=True):
    """The result of a heartbeat of several sockets."""

    ts: int  # the time of the database, and the new ``last_seen`` of all sessions that are open
    changed: dict[str, "SocketSession | None"]  # by socket id; None if the session does not exist any more


class SocketSession(Struct, frozen=True):
    """A session as its socket needs it."""

    stage: str
    socket_id: str | None  # the current socket
    snapshot: SessionSnapshot

    @property
    def is_open(self) -> bool:
        return self.snapshot.alive and self.snapshot.status in (PENDING, CONFIRMED)

    @classmethod
    def from_row(cls, row: Any) -> "SocketSession":
        return cls(row["stage"], row["socket"], SessionSnapshot.from_row(row))


class SocketStore:
    def __init__(self, database: Database, bus: Bus) -> None:
        self._database = database
        self._bus = bus
        self._read = Batch(database, _READ)
        self._attach = Batch(database, _ATTACH)

    async def attach(
        self, gsid: str, socket_id: str, address: str | None = None, early_poll_key: bytes | None = None
    ) -> SocketSession | None:
        """Makes this the session's current socket and wakes the previous one.

        Returns None if the session does not exist or has ended. With an ``address`` also if the session is bound to
        another address, or if ``early_poll_key``, the counter of early polls from the address, is blocked.
        """
        row = await self._attach(gsid=gsid, socket=socket_id, address=address, early_poll_key=early_poll_key)
        if row is None:
            return None
        publish_socket(self._bus, gsid, row["previous_worker"])
        return SocketSession.from_row(row)

    async def read(self, gsid: str) -> SocketSession | None:
        """Returns None if the session does not exist."""
        row = await self._read(gsid=gsid)
        return SocketSession.from_row(row) if row else None

    async def heartbeat(self, sockets: Sequence[ConnectedSocket]) -> SocketHeartbeat:
        """Updates last_seen of the sessions of the sockets."""
        rows = await self._database.rows(
            _HEARTBEAT,
            gsids=",".join([socket.gsid for socket in sockets]),
            sockets=",".join([socket.socket_id for socket in sockets]),
            stages=",".join([socket.stage for socket in sockets]),
        )
        changed = {
            row["heartbeat_of"]: SocketSession.from_row(row) if row["gsid"] else None
            for row in rows
            if row["heartbeat_of"]
        }
        return SocketHeartbeat(rows[0]["ts"], changed)

    async def cancel(self, gsid: str, socket_id: str) -> None:
        """Detaches a socket that the client has closed and cancels a held poll.

        Does nothing if another socket has replaced it.
        """
        publish_poll(self._bus, gsid, await self._database.value(_CANCEL, gsid=gsid, socket=socket_id))
