"""Streams of signals in the database, and the users whom a receiver has excluded."""

from collections.abc import Sequence

from sso.core.encryption import Keyring
from sso.core.ids import record_id
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.signals.event_types import SignalType
from sso.signals.recording_store import EXPIRES, TXN
from sso.ssf.examples import ExampleSignal
from sso.ssf.model import (
    MAX_WAITING,
    MIN_VERIFICATION_S,
    NewSettings,
    SignalStream,
    authorization_purpose,
    is_stream_id,
)

MAX_STREAMS = 10  # of one client
MAX_FORGOTTEN = 5000  # users at a time
OVERFULL = f"more than {MAX_WAITING} events have not been received; later ones are not kept"

_LIST = Statement("SELECT * FROM signal_streams WHERE client_id = :client_id ORDER BY created, stream_id")
_GET = Statement("SELECT * FROM signal_streams WHERE stream_id = :stream_id AND client_id = :client_id")
_LOCK = Statement(
    "SELECT * FROM signal_streams WHERE stream_id = :stream_id AND client_id = :client_id FOR NO KEY UPDATE"
)
# Two concurrent requests must not both add the last stream.
_LOCK_CLIENT = Statement("SELECT client_id FROM oauth_clients WHERE client_id = :client_id FOR NO KEY UPDATE")
_COUNT = Statement("SELECT count(*) FROM signal_streams WHERE client_id = :client_id")
_ADD = Statement(
    """INSERT INTO signal_streams
        (stream_id, client_id, method, endpoint_url, authorization_sealed, requested, events, description)
    VALUES (:stream_id, :client_id, :method, :endpoint_url, :authorization_sealed, :requested, :events, :description)
    RETURNING *"""
)
# A sender with a lease stops, and a changed stream is tried at once.
_CHANGE = Statement(
    """UPDATE signal_streams SET method = :method, endpoint_url = :endpoint_url, requested = :requested,
        events = :events, description = :description,
        authorization_sealed = CASE WHEN :keeps_authorization THEN authorization_sealed
            ELSE CAST(:authorization_sealed AS text) END,
        lease = '', lease_until = now(), next_try = now()
    WHERE stream_id = :stream_id RETURNING *"""
)
_DELETE = Statement("DELETE FROM signal_streams WHERE stream_id = :stream_id")
_FORGET_USERS = Statement(
    f"""WITH forgotten AS (
        DELETE FROM signal_subjects WHERE stream_id = :stream_id AND user_id = ANY (ARRAY(
            SELECT user_id FROM signal_subjects WHERE stream_id = :stream_id AND NOT excluded
            ORDER BY user_id LIMIT {MAX_FORGOTTEN}
        )) RETURNING 1
    ) SELECT count(*) FROM forgotten"""
)
_SET_STATUS = Statement(
    """UPDATE signal_streams SET status = :status, reason = :reason, overfull = false, lease = '', lease_until = now(),
        next_try = now()
    WHERE stream_id = :stream_id RETURNING *"""
)
_DROP_EARLIER = Statement("DELETE FROM signal_events WHERE stream_id = :stream_id AND type = :type AND sub IS NULL")
_DROP_EVENTS = Statement("DELETE FROM signal_events WHERE stream_id = :stream_id")
_ADD_EVENT = Statement(
    f"""INSERT INTO signal_events (stream_id, type, data, txn, expires)
    VALUES (:stream_id, :type, :data, {TXN}, {EXPIRES})"""
)
_ADD_EXAMPLE = Statement(
    f"""INSERT INTO signal_events (stream_id, type, sub, sid, email, data, txn, expires)
    SELECT stream_id, :type, :sub, :sid, :email, :data, {TXN}, {EXPIRES}
    FROM signal_streams WHERE stream_id = :stream_id AND status <> 'disabled' AND NOT overfull RETURNING id"""
)
# One of several concurrent requests gets a row.
_CLAIM_VERIFICATION = Statement(
    f"""UPDATE signal_streams SET verified = now() WHERE stream_id = :stream_id
        AND coalesce(verified < now() - interval '{MIN_VERIFICATION_S} seconds', true) RETURNING stream_id"""
)
_PAUSE_OVERFULL = Statement(
    f"""WITH overfull AS (
        SELECT s.stream_id FROM signal_streams s WHERE NOT s.overfull AND s.status <> 'disabled'
            AND (SELECT count(*) FROM (
                SELECT 1 FROM signal_events e WHERE e.stream_id = s.stream_id LIMIT {MAX_WAITING} + 1
            ) waiting) > {MAX_WAITING}
        ORDER BY s.stream_id FOR NO KEY UPDATE SKIP LOCKED
    ), paused AS (
        UPDATE signal_streams s SET status = 'paused', reason = :reason, overfull = true
        FROM overfull WHERE s.stream_id = overfull.stream_id RETURNING s.stream_id, s.client_id, s.method
    ), told AS (
        INSERT INTO signal_events (stream_id, type, data, txn, expires)
        SELECT stream_id, '{SignalType.STREAM_UPDATED}',
            jsonb_build_object('status', 'paused', 'reason', CAST(:reason AS text)), {TXN}, {EXPIRES}
        FROM paused
    )
    SELECT * FROM paused"""
)
# Nothing is stored about a user who is unknown to the client, and about one who does not exist.
_EXCLUDE = Statement(
    """INSERT INTO signal_subjects (stream_id, user_id, excluded)
    SELECT s.stream_id, u.user_id, true FROM signal_streams s JOIN users u ON u.user_id = :user_id
    WHERE s.stream_id = :stream_id AND (
        EXISTS (SELECT FROM signal_subjects k WHERE k.stream_id = s.stream_id AND k.user_id = u.user_id)
        OR EXISTS (SELECT FROM oauth_grants g WHERE g.user_id = u.user_id AND g.client_id = s.client_id
            AND cardinality(g.act) = 0)
        OR EXISTS (SELECT FROM oauth_consents o WHERE o.user_id = u.user_id AND o.client_id = s.client_id))
    ON CONFLICT (stream_id, user_id) DO UPDATE SET excluded = true"""
)
_INCLUDE = Statement(
    """UPDATE signal_subjects SET excluded = false
    WHERE stream_id = :stream_id AND user_id = :user_id AND excluded"""
)
_WAITING = Statement(
    """SELECT s.stream_id, (SELECT count(*) FROM signal_events e
        WHERE e.stream_id = s.stream_id AND e.expires > now()) AS waiting
    FROM signal_streams s WHERE s.client_id = :client_id"""
)


async def list_streams(runner: Runner, client_id: str) -> list[SignalStream]:
    return [SignalStream.from_row(row) for row in await runner.rows(_LIST, client_id=client_id)]


async def count_waiting(runner: Runner, client_id: str) -> dict[str, int]:
    """Returns how many events of each stream of the client wait for their receiver."""
    return {row["stream_id"]: row["waiting"] for row in await runner.rows(_WAITING, client_id=client_id)}


async def get_stream(runner: Runner, client_id: str, stream_id: str) -> SignalStream | None:
    if not is_stream_id(stream_id):
        return None
    return _stream(await runner.row(_GET, client_id=client_id, stream_id=stream_id))


async def lock_stream(tx: Transaction, client_id: str, stream_id: str) -> SignalStream | None:
    if not is_stream_id(stream_id):
        return None
    return _stream(await tx.row(_LOCK, client_id=client_id, stream_id=stream_id))


async def lock_client(tx: Transaction, client_id: str) -> bool:
    """Returns False if the client does not exist."""
    return await tx.value(_LOCK_CLIENT, client_id=client_id) is not None


async def add_stream(tx: Transaction, keyring: Keyring, client_id: str, settings: NewSettings) -> SignalStream | None:
    """Adds a stream of a client that the caller has locked. It gets the events from now on. Returns None if the client
    has too many."""
    if await tx.value(_COUNT, client_id=client_id) >= MAX_STREAMS:
        return None
    stream_id = record_id()
    sealed = _sealed(keyring, stream_id, settings.authorization)
    values = _columns(settings) | {"authorization_sealed": sealed}
    return SignalStream.from_row(await tx.row(_ADD, stream_id=stream_id, client_id=client_id, **values))


async def change_stream(tx: Transaction, keyring: Keyring, stream_id: str, settings: NewSettings) -> SignalStream:
    """Changes a stream that exists."""
    values = _columns(settings) | {
        "keeps_authorization": settings.authorization is None,
        "authorization_sealed": _sealed(keyring, stream_id, settings.authorization),
    }
    return SignalStream.from_row(await tx.row(_CHANGE, stream_id=stream_id, **values))


async def forget_some_users(runner: Runner, stream_id: str) -> bool:
    """Returns False if no more users are known. The excluded ones stay: a stream that goes on tells nothing of them."""
    return bool(await runner.value(_FORGET_USERS, stream_id=stream_id))


async def delete_stream(tx: Transaction, stream_id: str) -> None:
    """Deletes a stream, with its events."""
    await tx.value(_DELETE, stream_id=stream_id)


async def set_status(tx: Transaction, stream_id: str, status: str, reason: str) -> SignalStream:
    """Sets the status of a stream that exists. A disabled one loses the events that wait."""
    if status == "disabled":
        await tx.value(_DROP_EVENTS, stream_id=stream_id)
    return SignalStream.from_row(await tx.row(_SET_STATUS, stream_id=stream_id, status=status, reason=reason))


async def add_stream_event(tx: Transaction, stream_id: str, signal: SignalType, data: dict[str, str]) -> None:
    """Adds an event about the stream itself. Only the last one of each type matters."""
    await tx.value(_DROP_EARLIER, stream_id=stream_id, type=signal)
    await tx.value(_ADD_EVENT, stream_id=stream_id, type=signal, data=data)


async def add_example(tx: Transaction, stream_id: str, example: ExampleSignal) -> bool:
    """Adds an event that has not happened. Returns False if the stream is disabled, or too many events wait."""
    return await tx.value(_ADD_EXAMPLE, stream_id=stream_id, **example.values()) is not None


async def claim_verification(tx: Transaction, stream_id: str) -> bool:
    """Returns False if a verification was requested too recently."""
    return await tx.value(_CLAIM_VERIFICATION, stream_id=stream_id) is not None


async def pause_overfull_streams(runner: Runner) -> Sequence[Row]:
    """Pauses the streams with too many events, and returns them."""
    return await runner.rows(_PAUSE_OVERFULL, reason=OVERFULL)


async def set_excluded(runner: Runner, stream_id: str, user_id: str, *, excluded: bool) -> None:
    """Excludes a user from a stream, or includes the user again. Nothing happens if the client does not know them."""
    await runner.value(_EXCLUDE if excluded else _INCLUDE, stream_id=stream_id, user_id=user_id)


def _columns(settings: NewSettings) -> dict[str, object]:
    return {
        "method": settings.method,
        "endpoint_url": settings.endpoint_url,
        "requested": list(settings.requested),
        "events": settings.events,
        "description": settings.description,
    }


def _sealed(keyring: Keyring, stream_id: str, authorization: str | None) -> str | None:
    return keyring.encrypt(authorization_purpose(stream_id), authorization) if authorization else None


def _stream(row: Row | None) -> SignalStream | None:
    return None if row is None else SignalStream.from_row(row)
