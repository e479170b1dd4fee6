"""What polls do to a session's row. Polls that come together share a statement.

They may be many, and may come when there was nobody for hours. So in these statements each item is looked up by itself
(``= ANY (ARRAY[…])`` leaves no other way, whatever the table held when the plan was made), and what is known of it is
handed on from step to step: to find it again in an earlier step would take the square of their number.
"""

from collections.abc import Collection
from dataclasses import dataclass

import trio

from sso.accounts.model import User
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.model import Claimed, GameSessionData, PollTurn, SessionStatus
from sso.gsid.session_store import FACTS, REMEMBERED, STANDING, TELL_POLL, TELL_SOCKET

BURST = 30  # polls of one session within a second; more are early
MAX_SCAN = 5000

# Every poll gets a number of its own, also when several of one session come in one statement. Rows are locked in the
# order of their names, so that nobody waits in a circle. An older poll that may still be held is told. With an address
# it is admitted here, too, where that is all it takes (admission.py): the session is bound to it, and has no key.
_EXTEND = """
    WITH before AS (
        SELECT item.n, s.gsid, s.status, s.ends > now() AS alive,
            s.ends > now() AND s.status IN ('pending', 'confirmed') AS is_open,
            coalesce(s.held_until > now(), false) AS held, coalesce(s.retry_at > now(), false) AS early
        FROM unnest(CAST(:gsids AS text[]), CAST(:addresses AS text[]), CAST(:early AS bytea[]))
            WITH ORDINALITY AS item (gsid, address, early, n)
        JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid])
        WHERE s.ends > now() - {remembered} AND (item.address IS NULL OR (
            s.public_key IS NULL AND s.address = item.address
            AND (SELECT t.blocked_until > now() FROM throttle t WHERE t.key = item.early) IS NOT TRUE))
        ORDER BY item.gsid FOR UPDATE OF s
    ), extended AS (
        UPDATE game_sessions s SET
            poll = s.poll + b.together,
            ends = least(s.ends + make_interval(secs => {ttl}), s.created + make_interval(secs => {most})),
            held_until = now() + make_interval(secs => {hold}),
            retry_at = NULL,
            burst = CASE WHEN s.burst_since > now() - interval '1 s' THEN s.burst ELSE 0 END + b.together,
            burst_since = CASE WHEN s.burst_since > now() - interval '1 s' THEN s.burst_since ELSE now() END
        FROM (
            SELECT gsid, array_agg(n ORDER BY n) AS items, count(*) AS together, bool_or(held) AS held,
                bool_or(early) AS early
            FROM before WHERE is_open GROUP BY gsid
        ) b
        WHERE s.gsid = ANY (ARRAY[b.gsid])
        RETURNING b.*, s.burst, CAST(extract(epoch FROM s.ends - now()) AS float) AS left_s, {standing}
    )
    SELECT item.n, true AS extended, poll - together + place AS number, left_s, early OR burst > {burst} AS early,
        CASE WHEN held THEN {tell} END AS told, status, alive, poll, cancels, started, last_seen, ts
    FROM extended, unnest(items) WITH ORDINALITY AS item (n, place)
    UNION ALL
    SELECT n, false, 0, 0, early, NULL, status, alive, 0, 0, 0, 0, 0 FROM before WHERE NOT is_open
"""
# Once, and by the newest poll; by the same poll again, if it could not know whether it had succeeded. An older poll of
# the same session may be in the same batch: what was claimed is the newest one's alone.
_CLAIM = Statement(
    f"""
    WITH item AS (
        SELECT * FROM unnest(CAST(:gsids AS text[]), CAST(:polls AS int[])) WITH ORDINALITY AS item (gsid, number, n)
    ), before AS (
        SELECT item.n, s.gsid FROM item JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid]) AND s.poll = item.number
        WHERE s.status = 'confirmed' OR (s.status = 'delivered' AND s.claimed_poll = item.number)
        ORDER BY item.gsid FOR UPDATE OF s
    ), claimed AS (
        UPDATE game_sessions s SET status = 'delivered', claimed_poll = s.poll
        FROM before b, users u
        WHERE s.gsid = ANY (ARRAY[b.gsid]) AND s.ends > now()
            AND u.user_id = ANY (ARRAY[s.user_id]) AND u.valid_from = s.valid_from AND NOT u.disabled
        RETURNING b.n, {FACTS}, {STANDING}, s.socket, u.*
    )
    SELECT *, true AS claimed, false AS void, CASE WHEN socket IS NOT NULL THEN {TELL_SOCKET} END AS told FROM claimed
    UNION ALL
    SELECT item.n, {FACTS}, {STANDING}, s.socket, nobody.*, false, s.status = 'confirmed' AND (
            SELECT u.valid_from = s.valid_from AND NOT u.disabled FROM users u WHERE u.user_id = s.user_id
        ) IS NOT TRUE, NULL
    FROM item JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid]) LEFT JOIN users nobody ON false
    WHERE item.n NOT IN (SELECT n FROM claimed)
    """  # noqa: S608 - the parts are ours
)
# The number is used up, so that a claim of it that nobody waits for any more, but that may still be under way, comes to
# nothing. What the game has closed meanwhile stays closed.
_GIVE_BACK = Statement(
    f"""WITH done AS (
        UPDATE game_sessions SET poll = poll + 1, claimed_poll = NULL,
            status = CASE WHEN status <> 'delivered' THEN status WHEN state <> '' THEN 'closed' ELSE 'confirmed' END
        WHERE gsid = :gsid AND poll = :number
            AND (status IN ('pending', 'confirmed') OR (status = 'delivered' AND claimed_poll = :number))
        RETURNING gsid
    ) SELECT gsid, {TELL_POLL} FROM done"""  # noqa: S608 - the parts are ours
)
_DENY_CLAIMED = Statement(
    """UPDATE game_sessions SET status = 'denied'
    WHERE gsid = :gsid AND status = 'delivered' AND claimed_poll = :number"""
)
_DEFER = Statement(
    """UPDATE game_sessions s SET retry_at = now() + make_interval(secs => item.delay)
    FROM (
        SELECT s.gsid, item.delay, item.n
        FROM unnest(CAST(:gsids AS text[]), CAST(:polls AS int[]), CAST(:delays AS float[]))
            WITH ORDINALITY AS item (gsid, number, delay, n)
        JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid]) AND s.poll = item.number
        ORDER BY item.gsid FOR UPDATE OF s
    ) item
    WHERE s.gsid = ANY (ARRAY[item.gsid]) RETURNING item.n"""
)
_CHANGED = Statement(
    """SELECT item.gsid
    FROM unnest(CAST(:gsids AS text[]), CAST(:polls AS int[]), CAST(:cancels AS int[])) AS item (gsid, number, cancels)
    LEFT JOIN game_sessions s ON s.gsid = ANY (ARRAY[item.gsid])
    WHERE s.gsid IS NULL OR s.status <> 'pending' OR s.poll <> item.number OR s.cancels <> item.cancels"""
)


@dataclass(frozen=True)
class PollStart:
    """A look that could not claim anything."""

    standing: SessionStatus
    void: bool  # it was confirmed, but everything of that user has ended since


class PollStore:
    def __init__(self, database: Database, ttl_s: int, max_s: int, hold_s: int) -> None:
        self._database = database
        extend = _EXTEND.format(
            ttl=float(ttl_s),
            most=float(max_s),
            hold=float(hold_s),
            remembered=REMEMBERED,
            standing=STANDING,
            tell=TELL_POLL,
            burst=BURST,
        )
        self._extend = Batch(database, Statement(extend))
        self._claim = Batch(database, _CLAIM)
        self._defer = Batch(database, _DEFER)

    async def extend(self, gsid: str, address: str | None = None, early: bytes | None = None) -> PollTurn | None:
        """A new poll, which gives the session more time and makes older polls the older ones. None: no such session.

        With an ``address``, only a session that is bound to it, and has no key; and not while the address is blocked,
        for which it is known as ``early``.
        """
        row = await self._extend(gsid, address, early)
        if row is None:
            return None
        standing = SessionStatus.from_row(row)
        if not row["extended"]:
            return PollTurn(gsid, 0, 0, 0.0, row["early"], standing)
        return PollTurn(gsid, row["number"], standing.cancels, row["left_s"], row["early"], standing)

    async def claim(self, turn: PollTurn) -> Claimed | PollStart | None:
        """The login, if there is one and this poll is the newest; else how things stand. Once begun it is finished."""
        with trio.CancelScope(shield=True):  # the database has a deadline; one of many must know how it ended
            row = await self._claim(turn.gsid, turn.number)
        if row is None:
            return None
        standing = SessionStatus.from_row(row)
        if row["claimed"]:
            return Claimed(turn, standing, GameSessionData.from_row(row), User.from_row(row))
        return PollStart(standing, row["void"])

    async def give_back(self, turn: PollTurn) -> None:
        """What this poll has claimed, or may have, and has not reached its client: the next poll may have it."""
        with trio.CancelScope(shield=True):
            await self._database.value(_GIVE_BACK, gsid=turn.gsid, number=turn.number)

    async def deny(self, turn: PollTurn) -> None:
        """What this poll has claimed is nobody's: the user may not log in there any more."""
        with trio.CancelScope(shield=True):
            await self._database.value(_DENY_CLAIMED, gsid=turn.gsid, number=turn.number)

    async def defer(self, turn: PollTurn, delay: float) -> None:
        """From now on, a poll that comes before this delay has passed is early."""
        await self._defer(turn.gsid, turn.number, delay)

    async def changed(self, held: Collection[PollTurn]) -> list[str]:
        """Those of the held polls whose session is no longer as they last saw it."""
        turns = list(held)
        found: list[str] = []
        for start in range(0, len(turns), MAX_SCAN):
            part = turns[start : start + MAX_SCAN]
            rows = await self._database.rows(
                _CHANGED,
                gsids=[turn.gsid for turn in part],
                polls=[turn.number for turn in part],
                cancels=[turn.cancels for turn in part],
            )
            found += [row["gsid"] for row in rows]
        return found
