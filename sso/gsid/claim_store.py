"""The store of claims: which poll may hand out a confirmed login, and until when. Concurrent polls share a statement.

A claim is a lease. It ends when the answer was written (``mark_delivered``), when the worker gives it back
(``release``), or by itself if the worker is gone. After that, the client's next poll claims the login, and the same
statement voids everything that was issued under the earlier claim.

The id of a claim is the id of the sign-in that its tokens and its user JWT belong to. To void them, the statement
stores that sign-in as ended. It does so even if the sign-in does not exist yet: a late worker then cannot start it any
more.

An administrator may terminate a session, with everything that was issued for it.

To a worker of a release without leases, a claimed session is delivered. Its own claims have no lease.
"""

import trio
from msgspec import Struct
from msgspec.structs import asdict

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.bus.bus import Bus
from sso.core.ban import Ban
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.gsid.model import DELIVERED, Claim, Claimed, GameSessionData, NotClaimed, SessionSnapshot
from sso.gsid.session_store import POLL_WORKER, SESSION_COLUMNS, SNAPSHOT_COLUMNS, SOCKET_WORKER
from sso.gsid.topics import publish_poll, publish_socket

LEASE_S = 5.0
_LEASE_END = f"now() + interval '{LEASE_S} s'"

# The status of a session `s` as a poll sees it: a claimed login is confirmed, and becomes delivered when its answer was
# written. If the tokens were used, or the user has ended the sign-in, the client has got the answer. The subquery finds
# one row by its key; EXISTS might be planned as a scan of all sign-ins.
POLL_STATUS = """CASE WHEN s.claimed_until IS NULL THEN s.status
    WHEN (SELECT i.ended OR i.last_used > i.created FROM sign_ins i WHERE i.id = s.claim_id) THEN 'delivered'
    WHEN s.state <> '' AND s.claimed_until <= now() THEN 'closed' ELSE 'confirmed' END"""
LEASE_LEFT = "CAST(extract(epoch FROM s.claimed_until - now()) AS float)"  # NULL if there is no lease
POLL_SNAPSHOT_COLUMNS = SNAPSHOT_COLUMNS.replace("s.status", f"{POLL_STATUS} AS status", 1)

# A login can be claimed by the newest poll. The same poll may claim it again if its first claim had no answer. An older
# poll of the same session may be in the same batch: only the newest one gets the claim.
_CLAIM = BatchStatement(
    f"""
    WITH item AS ( -- the polls
        SELECT * FROM {{items}}
    ), claimable AS ( -- the sessions, locked in key order
        SELECT item.n, item.claim_id, s.gsid, nullif(s.claim_id, item.claim_id) AS old_claim_id,
            s.claimed_until <= now() AS lease_ended
        FROM item JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")} AND s.poll = item.number
        WHERE {POLL_STATUS} = 'confirmed'
            AND (s.claimed_until IS NULL OR s.claimed_until <= now() OR s.claim_id = item.claim_id)
        ORDER BY item.gsid FOR UPDATE OF s
    ), claimed AS ( -- those whose user is still valid
        UPDATE game_sessions s SET status = 'delivered', claimed_poll = s.poll, claim_id = claimable.claim_id,
            claimed_until = {_LEASE_END}
        FROM claimable, users u
        WHERE {by_index("s.gsid", "claimable.gsid")} AND s.ends > now()
            AND {by_index("u.user_id", "s.user_id")} AND u.valid_from = s.valid_from AND NOT u.disabled
        RETURNING claimable.n, {SESSION_COLUMNS}, {SNAPSHOT_COLUMNS}, {SOCKET_WORKER} AS socket_worker,
            claimable.old_claim_id, claimable.lease_ended, s.auth AS browser_auth, s.auth_time AS browser_auth_time, u.*
    ), voided AS ( -- the sign-ins of the claims before
        INSERT INTO sign_ins (id, user_id, last_used, expires, auth, ended)
        SELECT old_claim_id, user_id, now(), now() + make_interval(secs => {{keep_s}}), 'gsid', true
        FROM claimed WHERE old_claim_id IS NOT NULL ORDER BY old_claim_id
        ON CONFLICT (id) DO UPDATE SET ended = true, expires = excluded.expires
    )
    SELECT *, true AS claimed, false AS user_invalid, CAST(NULL AS float) AS lease_left_s FROM claimed
    UNION ALL
    SELECT item.n, {SESSION_COLUMNS}, {POLL_SNAPSHOT_COLUMNS}, NULL, NULL, false, NULL, NULL, no_user.*, false,
        (s.status = 'confirmed' OR s.claimed_until <= now()) AND (
            SELECT u.valid_from = s.valid_from AND NOT u.disabled FROM users u WHERE u.user_id = s.user_id
        ) IS NOT TRUE, {LEASE_LEFT}
    FROM item JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")} LEFT JOIN users no_user ON false
    WHERE item.n NOT IN (SELECT n FROM claimed)
    """,
    columns={"gsid": "text", "number": "int", "claim_id": "text"},
)
# A poll that is held meanwhile is woken, and is refused.
_MARK_DELIVERED = BatchStatement(
    f"""WITH locked AS ( -- the sessions that still have this claim
        SELECT item.n, s.gsid FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        WHERE s.claim_id = item.claim_id AND s.status = 'delivered' ORDER BY item.gsid FOR UPDATE OF s
    )
    UPDATE game_sessions s SET claimed_until = NULL FROM locked WHERE {by_index("s.gsid", "locked.gsid")}
    RETURNING locked.n, CASE WHEN s.poll <> s.claimed_poll THEN {POLL_WORKER} END AS poll_worker""",
    columns={"gsid": "text", "claim_id": "text"},
)
_RENEW = BatchStatement(
    f"""UPDATE game_sessions s SET claimed_until = {_LEASE_END}
    FROM (
        SELECT s.gsid, item.n FROM {{items}} JOIN game_sessions s ON {by_index("s.gsid", "item.gsid")}
        WHERE s.claim_id = item.claim_id AND s.claimed_until IS NOT NULL ORDER BY item.gsid FOR UPDATE OF s
    ) locked
    WHERE {by_index("s.gsid", "locked.gsid")} RETURNING locked.n""",
    columns={"gsid": "text", "claim_id": "text"},
)
# The poll's number is used up, so that a claim which may still be running finds nothing. A session that the game has
# closed meanwhile stays closed.
_RELEASE = Statement(
    f"""UPDATE game_sessions s SET poll = CASE WHEN poll = :number THEN poll + 1 ELSE poll END, claimed_poll = NULL,
        claimed_until = NULL,
        status = CASE WHEN status <> 'delivered' THEN status WHEN state <> '' THEN 'closed' ELSE 'confirmed' END
    WHERE gsid = :gsid AND (
        (status = 'delivered' AND claim_id = :claim_id) OR (status IN ('pending', 'confirmed') AND poll = :number))
    RETURNING {POLL_WORKER} AS poll_worker"""
)
_DENY = Statement(
    """UPDATE game_sessions SET status = 'denied', claimed_until = NULL, ban = CAST(:ban AS jsonb)
    WHERE gsid = :gsid AND status = 'delivered' AND claim_id = :claim_id RETURNING gsid"""
)
# A login that was delivered stays delivered, so that another poll is still refused as a repetition. One whose answer is
# being written loses its lease: the worker that writes it notices, and what it issued is void.
_CLOSE = Statement(
    f"""UPDATE game_sessions s SET claimed_until = NULL,
        status = CASE WHEN s.status = 'delivered' AND s.claimed_until IS NULL THEN 'delivered' ELSE 'closed' END
    WHERE s.gsid = :gsid AND (s.status = 'delivered' OR (s.status IN ('pending', 'confirmed') AND s.ends > now()))
    RETURNING s.status, s.user_id, s.claim_id, s.app_id, s.gapp_id, {POLL_WORKER} AS poll_worker,
        {SOCKET_WORKER} AS socket_worker"""
)
# Stored as ended even if it does not exist yet: a late worker then cannot start it.
_END_SIGN_IN = Statement(
    """INSERT INTO sign_ins (id, user_id, last_used, expires, auth, ended)
    VALUES (:id, :user_id, now(), now() + make_interval(secs => :keep_s), 'gsid', true)
    ON CONFLICT (id) DO UPDATE SET ended = true, expires = excluded.expires WHERE NOT sign_ins.ended RETURNING id"""
)
_END_TOKENS = Statement(
    """DELETE FROM session_tokens WHERE digest IN (
        SELECT digest FROM session_tokens WHERE user_id = :user_id AND sign_in = :id ORDER BY digest FOR UPDATE
    )"""
)


class ClaimStore:
    """``keep_s``: how long a void sign-in is kept, which is longer than its tokens and their renewals live."""

    def __init__(self, database: Database, bus: Bus, keep_s: int) -> None:
        self._database = database
        self._bus = bus
        self._claim = Batch(database, _CLAIM.substitute(keep_s=float(keep_s)))
        self._mark_delivered = Batch(database, _MARK_DELIVERED)
        self._renew = Batch(database, _RENEW)

    async def claim(self, claim: Claim) -> Claimed | NotClaimed | None:
        """Claims the login if there is one and the poll is the newest. Returns None if the session does not exist.

        It cannot be cancelled: other polls of the same batch depend on it, and the caller must know the result.
        """
        with trio.CancelScope(shield=True):  # the database has a deadline
            row = await self._claim(gsid=claim.gsid, number=claim.poll_number, claim_id=claim.claim_id)
        if row is None:
            return None
        snapshot = SessionSnapshot.from_row(row)
        if row["claimed"]:
            publish_socket(self._bus, claim.gsid, row["socket_worker"])
            return Claimed(
                snapshot,
                GameSessionData.from_row(row),
                User.from_row(row),
                row["browser_auth"] or "",
                row["browser_auth_time"] or 0,
                row["lease_ended"],
            )
        return NotClaimed(snapshot, row["user_invalid"], row["lease_left_s"])

    async def mark_delivered(self, claim: Claim) -> bool:
        """Ends the lease: nothing can claim the login again. Returns False if another poll has taken it over."""
        with trio.CancelScope(shield=True):
            row = await self._mark_delivered(gsid=claim.gsid, claim_id=claim.claim_id)
        if row is None:
            return False
        publish_poll(self._bus, claim.gsid, row["poll_worker"])
        return True

    async def renew(self, claim: Claim) -> bool:
        """Returns False if another poll has taken the claim over, or the session was closed or denied."""
        return await self._renew(gsid=claim.gsid, claim_id=claim.claim_id) is not None

    async def release(self, claim: Claim) -> None:
        """Makes the login available to the next poll if this claim has it, or may have it."""
        with trio.CancelScope(shield=True):
            row = await self._database.row(_RELEASE, gsid=claim.gsid, number=claim.poll_number, claim_id=claim.claim_id)
        if row is not None:
            publish_poll(self._bus, claim.gsid, row["poll_worker"])

    async def deny(self, claim: Claim, ban: Ban | None = None) -> bool:
        """Denies the login: the user may no longer log in to the application. Returns False if the claim was lost."""
        stored = asdict(ban) if ban else None
        with trio.CancelScope(shield=True):
            gsid = await self._database.value(_DENY, gsid=claim.gsid, claim_id=claim.claim_id, ban=stored)
        return gsid is not None


class TerminatedSession(Struct, frozen=True):
    """A session that was terminated, and the workers that hold its poll and its socket; None if there are none."""

    gsid: str
    poll_worker: str | None
    socket_worker: str | None

    def wake_clients(self, bus: Bus) -> None:
        """Answers its held poll and closes its socket. To be called when the transaction is committed."""
        publish_poll(bus, self.gsid, self.poll_worker)
        publish_socket(bus, self.gsid, self.socket_worker)


async def terminate_session(tx: Transaction, gsid: str, keep_s: float) -> TerminatedSession | None:
    """Closes the session and ends the tokens of its login. Returns None if there was nothing to end.

    ``keep_s``: how long the end of the login is remembered, which is longer than its tokens can be renewed.
    """
    row = await tx.row(_CLOSE, gsid=gsid)
    if row is None:
        return None
    if row["claim_id"] is not None:
        sign_in = {"id": row["claim_id"], "user_id": row["user_id"]}
        if await tx.value(_END_SIGN_IN, **sign_in, keep_s=keep_s) is not None:
            await tx.value(_END_TOKENS, **sign_in)
            names = {"app_id": row["app_id"], "gapp_id": row["gapp_id"]}
            await record_event(tx, row["user_id"], EventKind.GAME_ENDED, **names)
        elif row["status"] == DELIVERED:
            return None
    return TerminatedSession(gsid, row["poll_worker"], row["socket_worker"])
