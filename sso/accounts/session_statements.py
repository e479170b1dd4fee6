"""The statements that start browser sessions, see :class:`sso.accounts.session_store.SessionStore`.

They follow the CTEs of :func:`sso.accounts.guarded_statements.guarded_by_user`.
"""

from sso.accounts.login.rate_limit_store import COUNT_SUCCESSES
from sso.db.batch.statement import by_index
from sso.signals.recording_store import RECORD_ASSURANCE

MAX_SESSIONS = 50  # for one user; the oldest end
NEW_SESSION_COLUMNS = {
    "digest": "bytea",
    "id": "text",
    "life": "float",
    "address": "text",
    "device": "text",
    "auth": "text",
    "visit": "bytea",
    "signed_in": "timestamptz",  # when the sign-in began that the session continues; NULL: now
    "authenticated": "timestamptz",  # when the user last proved who they are, if that is not now
    "is_fresh": "bool",
    "must_enrol": "bool",
    "is_sign_in": "bool",
    "sid": "text",
}

# `visit` is the digest of the browser's visit cookie, NULL if it has none. Usually no session or challenge has this
# digest. A locked row is skipped, because the transaction that holds it is deleting it. Sessions that start at the same
# moment do not see each other: a user may have more than the limit until the next sign-in.
_NEW_SESSIONS = f""", owners AS (
        SELECT user_id, count(*) AS added FROM new_items GROUP BY user_id
    ), surplus_sessions AS (
        -- The oldest sessions beyond the limit, counting the new ones, which are not visible here yet.
        SELECT s.digest FROM owners CROSS JOIN LATERAL (
            SELECT digest FROM browser_sessions WHERE {by_index("user_id", "owners.user_id")}
            ORDER BY created DESC, digest OFFSET greatest(0, {MAX_SESSIONS} - owners.added)
        ) s
    ), dropped_sessions AS (
        SELECT digest FROM browser_sessions WHERE digest = ANY (ARRAY(
            SELECT visit FROM new_items UNION ALL SELECT digest FROM surplus_sessions
        )) FOR UPDATE SKIP LOCKED
    ), ended_sessions AS (
        DELETE FROM browser_sessions WHERE digest = ANY (ARRAY(SELECT digest FROM dropped_sessions))
    ), met_challenges AS (
        -- The challenges that this login has met with its second factor.
        SELECT digest FROM login_challenges WHERE digest = ANY (ARRAY(SELECT visit FROM new_items))
        FOR UPDATE SKIP LOCKED
    ), ended_challenges AS (
        DELETE FROM login_challenges WHERE digest = ANY (ARRAY(SELECT digest FROM met_challenges))
    ), new_sessions AS (
        INSERT INTO browser_sessions
            (digest, id, user_id, created, last_seen, expires, address, device, auth, authenticated, must_enrol, sid)
        SELECT digest, id, user_id, coalesce(signed_in, now()), now(), now() + make_interval(secs => life), address,
            device, auth, CASE WHEN is_fresh THEN now() ELSE authenticated END, must_enrol, sid FROM new_items
        RETURNING digest, created, authenticated
    ), new_events AS (
        INSERT INTO account_events (user_id, kind, address, device, detail)
        SELECT user_id, 'signed_in', address, device, jsonb_build_object('auth', auth) FROM new_items WHERE is_sign_in
    )"""


def _start(more: str) -> str:
    return f""", new_items AS (
        SELECT * FROM valid_items
    ) {_NEW_SESSIONS}{more}
    SELECT n, new_sessions.created, new_sessions.authenticated, CAST(NULL AS float) AS wait
    FROM new_items JOIN new_sessions USING (digest)"""


def start_and_count(more: str = "", result: str = "") -> str:
    """With a correct password: no session starts while a counter of the login is blocked.

    ``more`` are CTEs that follow ``new_items`` and ``new_sessions``. ``result`` adds columns to the rows.
    """
    return f"""{COUNT_SUCCESSES}, new_items AS (
        SELECT * FROM attempts WHERE wait IS NULL
    ) {_NEW_SESSIONS}{more}
    SELECT n, new_sessions.created, new_sessions.authenticated, wait{result}
    FROM attempts LEFT JOIN new_sessions USING (digest)"""


START, START_AND_COUNT = _start(""), start_and_count()
# For a session that continues another one with more or fewer factors, which the sites of that session are told.
ASSURANCE_COLUMN = {"assurance": "text"}  # the data of the signal
STEP_UP, STEP_UP_AND_COUNT = _start(RECORD_ASSURANCE), start_and_count(RECORD_ASSURANCE)
