"""The store of sockets: a session has one current socket, whose heartbeats update last_seen."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sso.bus.bus import Bus
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.model import CONFIRMED, PENDING, SessionSnapshot
from sso.gsid.session_store import POLL_WORKER, SNAPSHOT_COLUMNS, SOCKET_WORKER
from sso.gsid.topics import publish_poll, publish_socket

_ATTACH = Statement(
    f"""WITH previous AS ( -- the session, unless it has ended
        SELECT s.gsid, {SOCKET_WORKER} AS worker FROM game_sessions s
        WHERE s.gsid = :gsid AND s.ends > now() AND s.status IN ('pending', 'confirmed') FOR UPDATE
    )
    UPDATE game_sessions s SET socket = :socket, last_seen = now() FROM previous WHERE s.gsid = previous.gsid
    RETURNING s.stage, s.socket, {SNAPSHOT_COLUMNS}, previous.worker AS previous_worker"""  # noqa: S608 - fixed texts
)
_READ = BatchStatement(
    f"""SELECT item.n, s.stage, s.socket, {SNAPSHOT_COLUMNS}
    FROM {{items}} JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid])""",  # noqa: S608 - fixed texts
    columns={"gsid": "text"},
)
_HEARTBEAT = Statement(
    f"""WITH locked AS ( -- the sessions of all sockets; a replaced socket or an ended session is not current
        SELECT item.socket AS heartbeat_of, s.gsid, s.stage, s.socket, {SNAPSHOT_COLUMNS},
            s.socket = item.socket AND s.ends > now() AND s.status IN ('pending', 'confirmed') AS is_current
        FROM unnest(CAST(:gsids AS text[]), CAST(:sockets AS text[])) AS item (gsid, socket)
        JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid]) ORDER BY item.gsid FOR UPDATE OF s
    ), updated AS ( -- the current ones, with a new last_seen
        UPDATE game_sessions s SET last_seen = now() FROM locked
        WHERE s.gsid = ANY (ARRAY[locked.gsid]) AND locked.is_current
        RETURNING locked.heartbeat_of, s.gsid, s.stage, s.socket, {SNAPSHOT_COLUMNS}
    )
    SELECT * FROM updated
    UNION ALL
    SELECT heartbeat_of, gsid, stage, socket, status, alive, newest_poll, cancels, started, last_seen, ts
    FROM locked WHERE is_current IS NOT TRUE"""  # noqa: S608 - fixed texts
)
_CANCEL = Statement(
    f"""UPDATE game_sessions s SET socket = NULL, cancels = cancels + 1
    WHERE gsid = :gsid AND socket = :socket
    RETURNING {POLL_WORKER} AS poll_worker"""  # noqa: S608 - fixed texts
)


@dataclass(frozen=True)
class SocketSession:
    """A session as its socket needs it."""

    stage: str
    socket_id: str | None  # of the current socket
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

    async def attach(self, gsid: str, socket_id: str) -> SocketSession | None:
        """Makes this the session's current socket and wakes the previous one.

        Returns None if the session does not exist or has ended.
        """
        row = await self._database.row(_ATTACH, gsid=gsid, socket=socket_id)
        if row is None:
            return None
        publish_socket(self._bus, gsid, row["previous_worker"])
        return SocketSession.from_row(row)

    async def read(self, gsid: str) -> SocketSession | None:
        """Returns None if the session does not exist."""
        row = await self._read(gsid=gsid)
        return SocketSession.from_row(row) if row else None

    async def heartbeat(self, sockets: Iterable[tuple[str, str]]) -> dict[str, SocketSession]:
        """Updates last_seen for pairs of gsid and socket id. Returns the sessions by socket id."""
        pairs = list(sockets)
        rows = await self._database.rows(
            _HEARTBEAT, gsids=[gsid for gsid, _ in pairs], sockets=[socket_id for _, socket_id in pairs]
        )
        return {row["heartbeat_of"]: SocketSession.from_row(row) for row in rows}

    async def cancel(self, gsid: str, socket_id: str) -> None:
        """Detaches a socket that the client has closed and cancels a held poll.

        Does nothing if another socket has replaced it.
        """
        publish_poll(self._bus, gsid, await self._database.value(_CANCEL, gsid=gsid, socket=socket_id))
