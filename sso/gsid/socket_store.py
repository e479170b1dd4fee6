"""What sockets do to a session's row: one of them at a time is a session's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.model import CONFIRMED, PENDING, SessionStatus
from sso.gsid.session_store import STANDING, TELL_POLL, TELL_SOCKET

_ATTACH = Statement(
    f"""WITH done AS (
        UPDATE game_sessions s SET socket = :socket, last_seen = now()
        WHERE s.gsid = :gsid AND s.ends > now() AND s.status IN ('pending', 'confirmed')
        RETURNING s.gsid, s.stage, s.socket, {STANDING}
    ) SELECT *, {TELL_SOCKET} FROM done"""  # noqa: S608 - the parts are ours
)
_LOOK = Statement(
    f"""SELECT item.n, s.stage, s.socket, {STANDING}
    FROM unnest(CAST(:gsids AS text[])) WITH ORDINALITY AS item (gsid, n)
    JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid])"""  # noqa: S608 - the parts are ours
)
# Many in one statement. A socket that was replaced no longer counts, and neither does an ended session.
_BEAT = Statement(
    f"""WITH before AS (
        SELECT item.socket AS of, s.gsid, s.stage, s.socket, {STANDING},
            s.socket = item.socket AND s.ends > now() AND s.status IN ('pending', 'confirmed') AS counts
        FROM unnest(CAST(:gsids AS text[]), CAST(:sockets AS text[])) AS item (gsid, socket)
        JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid]) ORDER BY item.gsid FOR UPDATE OF s
    ), beaten AS (
        UPDATE game_sessions s SET last_seen = now() FROM before b WHERE s.gsid = ANY (ARRAY[b.gsid]) AND b.counts
        RETURNING b.of, s.gsid, s.stage, s.socket, {STANDING}
    )
    SELECT * FROM beaten
    UNION ALL
    SELECT of, gsid, stage, socket, status, alive, poll, cancels, started, last_seen, ts
    FROM before WHERE counts IS NOT TRUE"""  # noqa: S608 - the parts are ours
)
_CANCEL = Statement(
    f"""WITH done AS (
        UPDATE game_sessions SET socket = NULL, cancels = cancels + 1
        WHERE gsid = :gsid AND socket = :socket RETURNING gsid
    ) SELECT gsid, {TELL_POLL} FROM done"""  # noqa: S608 - the parts are ours
)


@dataclass(frozen=True)
class SocketSession:
    """A session as its socket sees it."""

    stage: str
    socket: str | None  # whose it is now
    standing: SessionStatus

    @property
    def is_open(self) -> bool:
        return self.standing.alive and self.standing.status in (PENDING, CONFIRMED)

    @classmethod
    def from_row(cls, row: Any) -> "SocketSession":
        return cls(row["stage"], row["socket"], SessionStatus.from_row(row))


class SocketStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._look = Batch(database, _LOOK)

    async def attach(self, gsid: str, socket: str) -> SocketSession | None:
        """The session's socket from now on; the one before is told. None if the session is not there any more."""
        row = await self._database.row(_ATTACH, gsid=gsid, socket=socket)
        return SocketSession.from_row(row) if row else None

    async def look(self, gsid: str) -> SocketSession | None:
        row = await self._look(gsid)
        return SocketSession.from_row(row) if row else None

    async def beat(self, sockets: Iterable[tuple[str, str]]) -> dict[str, SocketSession]:
        """last_seen of all these (gsid, socket), and what is seen of their sessions, by socket."""
        pairs = list(sockets)
        rows = await self._database.rows(
            _BEAT, gsids=[gsid for gsid, _ in pairs], sockets=[socket for _, socket in pairs]
        )
        return {row["of"]: SocketSession.from_row(row) for row in rows}

    async def cancel(self, gsid: str, socket: str) -> None:
        """The client has closed it: a poll that is held somewhere is cancelled. Not for a socket that was replaced."""
        await self._database.value(_CANCEL, gsid=gsid, socket=socket)
