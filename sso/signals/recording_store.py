"""Stores the signals about a user in the streams of the clients that know the user."""

from collections.abc import Sequence
from typing import Any

from sso.db.service_clients import MAY_HAVE_STREAMS
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.signals.event_types import SignalType

KEPT_DAYS = 30
EXPIRES = f"now() + interval '{KEPT_DAYS} days'"
# The same for all signals of a transaction, and different after the database was restored from a backup.
TXN = "CAST(pg_current_xact_id() AS text) || '-' || CAST(extract(epoch FROM now()) * 1000000 AS bigint)"

# The streams of the clients that know the user: by a grant (not that of an exchanged token), by a consent, or because
# the user had a grant or they have had a signal about the user. A client that the receiver has removed the user from
# gets none.
_RECEIVERS = f"""known_clients AS (
        SELECT client_id FROM oauth_grants WHERE user_id = :user_id AND cardinality(act) = 0
        UNION SELECT client_id FROM oauth_consents WHERE user_id = :user_id
    ), receivers AS (
        SELECT s.stream_id, s.method, s.events, s.client_id, c.profile, c.application_id
        FROM signal_streams s JOIN oauth_clients c ON c.client_id = s.client_id
            AND {MAY_HAVE_STREAMS.format("c")}
        LEFT JOIN signal_subjects k ON k.stream_id = s.stream_id AND k.user_id = :user_id
        WHERE s.status <> 'disabled' AND NOT s.overfull AND k.excluded IS NOT TRUE
            AND (k.user_id IS NOT NULL OR s.client_id = ANY (ARRAY(SELECT client_id FROM known_clients)))
    )"""
_REMEMBER = """remembered AS (
        INSERT INTO signal_subjects (stream_id, user_id) SELECT DISTINCT stream_id, :user_id FROM recorded
        ON CONFLICT DO NOTHING
    )
    SELECT DISTINCT stream_id, method FROM recorded JOIN receivers USING (stream_id)"""
_RECORD = Statement(
    f"""WITH {_RECEIVERS}, item AS (
        SELECT * FROM unnest(CAST(:types AS text[]), CAST(:data AS jsonb[]), CAST(:emails AS text[]))
            WITH ORDINALITY AS t (type, data, email, n)
    ), recorded AS (
        INSERT INTO signal_events (stream_id, type, sub, email, data, txn, expires)
        SELECT r.stream_id, item.type, :user_id, item.email, item.data, {TXN}, {EXPIRES}
        FROM receivers r JOIN item ON item.type = ANY (r.events)
        WHERE r.client_id = coalesce(CAST(:client_id AS text), r.client_id)
            AND (CAST(:application_id AS int) IS NULL OR r.application_id = CAST(:application_id AS int))
            AND (CAST(:project_id AS text) IS NULL OR r.application_id = ANY (ARRAY(
                SELECT application_id FROM applications WHERE project_id = CAST(:project_id AS text))))
            -- A user who is still disabled or banned in another way is not enabled.
            AND (item.type <> '{SignalType.ACCOUNT_ENABLED}' OR EXISTS (SELECT FROM users u
                WHERE u.user_id = :user_id AND NOT u.disabled
                    AND ban_in_force(u.bans, ARRAY[r.application_id]) IS NULL))
            -- The address is told to those only that the user has told it to.
            AND (item.email IS NULL
                OR EXISTS (SELECT FROM oauth_grants g WHERE g.user_id = :user_id AND g.client_id = r.client_id
                    AND cardinality(g.act) = 0 AND 'email' = ANY (g.scopes))
                OR EXISTS (SELECT FROM oauth_consents g WHERE g.user_id = :user_id AND g.client_id = r.client_id
                    AND 'email' = ANY (g.scopes)))
        ORDER BY r.stream_id, item.n
        RETURNING stream_id
    ), {_REMEMBER}"""
)
# A client whose ID tokens name the session is told which one has ended.
_RECORD_SESSIONS = Statement(
    f"""WITH {_RECEIVERS}, sessions AS (
        SELECT DISTINCT r.stream_id, CASE WHEN r.profile <> 'strict' THEN g.sid END AS sid
        FROM receivers r LEFT JOIN oauth_grants g ON g.client_id = r.client_id AND g.user_id = :user_id
            AND cardinality(g.act) = 0
        WHERE '{SignalType.SESSION_REVOKED}' = ANY (r.events)
            AND CASE WHEN CAST(:sids AS text[]) IS NULL THEN true ELSE g.sid = ANY (CAST(:sids AS text[])) END
            -- Without a grant nothing is known about the sessions of the site, so all of them end.
            AND (g.id IS NULL OR g.sid IS DISTINCT FROM CAST(:kept_sid AS text))
    ), recorded AS (
        INSERT INTO signal_events (stream_id, type, sub, sid, data, txn, expires)
        SELECT stream_id, '{SignalType.SESSION_REVOKED}', :user_id, sid, :data, {TXN}, {EXPIRES} FROM sessions
        ORDER BY stream_id, sid
        RETURNING stream_id
    ), {_REMEMBER}"""
)
# The last CTE of a statement that starts the sessions ``new_items``, which continue others with another assurance.
RECORD_ASSURANCE = f""", assurance_signals AS (
        INSERT INTO signal_events (stream_id, type, sub, sid, data, txn, expires)
        SELECT DISTINCT s.stream_id, '{SignalType.ASSURANCE_LEVEL_CHANGE}', i.user_id,
            CASE WHEN c.profile <> 'strict' THEN i.sid END, CAST(i.assurance AS jsonb), {TXN}, {EXPIRES}
        FROM new_items i JOIN oauth_grants g ON g.user_id = i.user_id AND g.sid = i.sid AND cardinality(g.act) = 0
        JOIN signal_streams s ON s.client_id = g.client_id AND s.status <> 'disabled' AND NOT s.overfull
            AND '{SignalType.ASSURANCE_LEVEL_CHANGE}' = ANY (s.events)
        JOIN oauth_clients c ON c.client_id = s.client_id AND {MAY_HAVE_STREAMS.format("c")}
        WHERE NOT EXISTS (SELECT FROM signal_subjects k
            WHERE k.stream_id = s.stream_id AND k.user_id = i.user_id AND k.excluded)
    )"""
_FORGET_CLIENT = Statement(
    """DELETE FROM signal_subjects k USING signal_streams s
    WHERE s.stream_id = k.stream_id AND s.client_id = :client_id AND k.user_id = :user_id
        AND NOT k.excluded"""
)
_FORGET_ADDRESSES = Statement("DELETE FROM signal_events WHERE sub = :user_id AND email IS NOT NULL")


async def insert_signals(
    tx: Runner,
    user_id: str,
    signals: Sequence[tuple[str, dict[str, Any], str | None]],
    client_id: str | None,
    application_id: int | None,
    project_id: str | None,
) -> list[Row]:
    """Stores signals of the user: type, data and the address that the signal is about. Returns their streams."""
    types, data, emails = zip(*signals, strict=True)
    names = {"client_id": client_id, "application_id": application_id, "project_id": project_id}
    values = {"types": list(types), "data": list(data), "emails": list(emails)}
    return await tx.rows(_RECORD, user_id=user_id, **values, **names)


async def insert_session_signals(
    tx: Runner, user_id: str, sids: Sequence[str] | None, kept_sid: str | None, data: dict[str, Any]
) -> list[Row]:
    """Stores that sessions of the user have ended, for the clients with a grant of one. Returns their streams."""
    names = None if sids is None else list(sids)
    return await tx.rows(_RECORD_SESSIONS, user_id=user_id, sids=names, kept_sid=kept_sid, data=data)


async def forget_client(tx: Runner, user_id: str, client_id: str) -> None:
    """The client gets no further signals about a user who has removed it."""
    await tx.value(_FORGET_CLIENT, user_id=user_id, client_id=client_id)


async def forget_addresses(tx: Runner, user_id: str) -> None:
    """Deletes the signals that contain addresses of a user who is erased."""
    await tx.value(_FORGET_ADDRESSES, user_id=user_id)
