"""Which clients are recorded, and what was recorded. Both end after an hour."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

RECORDING_S = 3600
# Of one client. A stranger who knows its id can send requests, which prove nothing: they have a part of their own, of
# which one network has a part. In both parts, all networks have the same share before one of them gets more: whoever
# sends many requests, also with a token of the client, does not push out those of others.
MAX_PROVEN, MAX_UNPROVEN, MAX_UNPROVEN_OF_NETWORK = 100, 100, 25

_START = Statement(
    """INSERT INTO oauth_recordings (client_id, expires) VALUES (:client_id, now() + make_interval(secs => :seconds))
    ON CONFLICT (client_id) DO UPDATE SET expires = excluded.expires RETURNING expires"""
)
_STOP = Statement("DELETE FROM oauth_recordings WHERE client_id = :client_id AND expires > now() RETURNING expires")
_END = Statement("SELECT expires FROM oauth_recordings WHERE client_id = :client_id AND expires > now()")
_ACTIVE = Statement(
    """SELECT r.client_id, extract(epoch FROM r.expires) AS until, c.redirect_hosts, c.redirect_uris
    FROM oauth_recordings r JOIN oauth_clients c USING (client_id) WHERE r.expires > now() ORDER BY r.client_id"""
)
_ADD = Statement(
    """INSERT INTO oauth_recorded_requests (client_id, network, proven, content, expires)
    SELECT r.client_id, item.network, item.proven, item.content, now() + make_interval(secs => :seconds)
    FROM jsonb_to_recordset(CAST(:items AS jsonb)) AS item (client_id text, network text, proven bool, content jsonb)
        JOIN oauth_recordings r ON r.client_id = item.client_id AND r.expires > now()"""
)
_TRIM = Statement(
    """WITH ranked AS (
        SELECT id, client_id, proven, row_number() OVER (PARTITION BY client_id, proven, network ORDER BY id DESC) AS n
        FROM oauth_recorded_requests WHERE client_id = ANY (CAST(:client_ids AS text[]))
    ), kept AS (
        SELECT id, proven, row_number() OVER (PARTITION BY client_id, proven ORDER BY n, id DESC) AS n
        FROM ranked WHERE proven OR n <= :of_network
    )
    DELETE FROM oauth_recorded_requests WHERE client_id = ANY (CAST(:client_ids AS text[]))
        AND id NOT IN (SELECT id FROM kept WHERE n <= :proven AND (proven OR n <= :unproven))"""
)
_LIST = Statement(
    """SELECT id, at, network, content FROM oauth_recorded_requests
    WHERE client_id = :client_id AND expires > now() ORDER BY id DESC"""
)


async def start_recording(tx: Transaction, client_id: str) -> datetime:
    """Returns when the recording ends. One that is on is prolonged."""
    end: datetime = await tx.value(_START, client_id=client_id, seconds=float(RECORDING_S))
    return end


async def stop_recording(tx: Transaction, client_id: str) -> bool:
    """Returns whether the client was recorded."""
    return await tx.value(_STOP, client_id=client_id) is not None


async def recording_end(runner: Runner, client_id: str) -> datetime | None:
    end: datetime | None = await runner.value(_END, client_id=client_id)
    return end


async def active_recordings(runner: Runner) -> list[Row]:
    return await runner.rows(_ACTIVE)


async def add_requests(tx: Transaction, items: Sequence[dict[str, Any]]) -> None:
    """Stores requests of clients that are still recorded, and deletes the oldest ones above the limits."""
    await tx.value(_ADD, items=list(items), seconds=float(RECORDING_S))
    await tx.value(
        _TRIM,
        client_ids=sorted({item["client_id"] for item in items}),
        of_network=MAX_UNPROVEN_OF_NETWORK,
        proven=MAX_PROVEN,
        unproven=MAX_UNPROVEN,
    )


async def list_requests(runner: Runner, client_id: str) -> list[Row]:
    """Returns at most MAX_PROVEN and MAX_UNPROVEN requests, the newest first."""
    return await runner.rows(_LIST, client_id=client_id)
