"""The statements that look up and issue session tokens, see :class:`sso.accounts.session_tokens.SessionTokens`."""

from sso.accounts.guarded_statements import NOW
from sso.accounts.signed_in_game_store import EXPIRED_JWT_S
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.statement import Statement

MAX_USER_TOKENS = 100  # session tokens of one user; the least recently used end
MAX_USER_SIGN_INS = 1000  # that go on, and as many that have ended; the least recently used are deleted
MAX_DELETED = 1000  # sign-ins that one statement deletes
NEWEST_EVENTS = 20  # of a user, among which the last sign-in of a device is looked for
MAX_SIGN_IN_TOKENS = 10  # session tokens of one sign-in: a program that renews often must not end the tokens of others

# A token beyond MAX_USER_TOKENS is rejected here, even if concurrent sign-ins have left it in the table.
LOOK_UP = BatchStatement(
    f"""SELECT item.n, u.*, t.kind, t.address, t.ips, t.app_id, t.gapp_id, t.sign_in, s.auth,
        s.second_factor,
        CAST(floor(extract(epoch FROM t.expires - now())) AS int) AS life,
        coalesce(s.auth_time, CAST(floor(extract(epoch FROM s.created)) AS bigint)) AS auth_time,
        CAST(floor(extract(epoch FROM s.created - now()) + item.max_s) AS int) AS sign_in_life
    FROM {{items}}
    JOIN session_tokens t ON t.digest = item.digest JOIN sign_ins s ON s.id = t.sign_in
    JOIN users u ON u.user_id = t.user_id
    WHERE t.expires > now() + interval '1 second' AND s.created > now() - make_interval(secs => item.max_s - 1)
        AND NOT s.ended AND NOT u.disabled AND {MAX_USER_TOKENS} > (
            SELECT count(*) FROM (
                SELECT 1 FROM session_tokens newer
                WHERE newer.user_id = t.user_id AND (newer.used, newer.digest) > (t.used, t.digest)
                    AND newer.expires > now() LIMIT {MAX_USER_TOKENS}
            ) counted
        )""",
    columns={"digest": "bytea", "max_s": "float"},
)
# The ban because of which the token of a sign-in does not work any more. The sign-in was ended by the ban.
BAN_OF_TOKEN = Statement(
    """SELECT ban_in_force(u.bans, ARRAY[CAST(t.app_id AS int), CAST(t.gapp_id AS int)])
    FROM session_tokens t JOIN users u USING (user_id) WHERE t.digest = :digest AND t.expires > now()"""
)
ISSUE_APPLICATIONS = "ARRAY[CAST(item.app_id AS int), CAST(item.gapp_id AS int)]"
ISSUE_COLUMNS = {
    "token": "bytea",
    "kind": "text",
    "address": "text",
    "life": "float",
    "stoken": "bytea",  # NULL for a bound token, which is issued alone
    "short_life": "float",
    "sign_in": "text",
    "source": "bytea",  # digest of the token that is renewed, NULL for a new sign-in
    "auth": "text",
    "auth_time": "bigint",  # NULL: now; 0: no proof is known
    "second_factor": "bool",
    "app_id": "bigint",
    "gapp_id": "bigint",
    "ips": "text",  # separated by commas
    "max_s": "float",
    "device_key": "bytea",  # digest of the key of the device that signs in, NULL without one
}
# Issues to the rows of ``valid_items``. Afterwards, ``accepted`` has those that got tokens.
ISSUE_CTES = f""", live_sign_ins AS (
        -- The sign-ins to renew. The lock makes a renewal and the end of the sign-in wait for each other.
        SELECT id FROM sign_ins WHERE id = ANY (ARRAY(SELECT sign_in FROM valid_items WHERE source IS NOT NULL))
            AND NOT ended ORDER BY id FOR NO KEY UPDATE {{if_locked}}
    ), renewed_sign_ins AS (
        UPDATE sign_ins s SET last_used = now(), address = i.address,
            expires = s.created + make_interval(secs => i.max_s + {EXPIRED_JWT_S})
        FROM valid_items i WHERE {by_index("s.id", "i.sign_in")} AND s.id = ANY (ARRAY(SELECT id FROM live_sign_ins))
    ), new_sign_ins AS (
        INSERT INTO sign_ins (id, user_id, last_used, expires, address, auth, auth_time, second_factor, app_id, gapp_id,
            device_key)
        SELECT sign_in, user_id, now(), now() + make_interval(secs => max_s + {EXPIRED_JWT_S}), address, auth,
            auth_time, second_factor, app_id, gapp_id, device_key FROM valid_items WHERE source IS NULL
        ON CONFLICT (id) DO NOTHING RETURNING id -- a sign-in may be ended before it starts: see gsid/claim_store.py
    ), accepted AS (
        -- The items that get tokens: their user is valid and their sign-in has not ended.
        SELECT * FROM valid_items WHERE sign_in = ANY (ARRAY(SELECT id FROM new_sign_ins UNION ALL
            SELECT id FROM live_sign_ins))
    ), new_tokens AS (
        INSERT INTO session_tokens (digest, user_id, kind, address, expires, sign_in, ips, app_id, gapp_id)
        SELECT token, user_id, kind, CASE kind WHEN 'bound' THEN address END, now() + make_interval(secs => life),
            sign_in, string_to_array(ips, ','), app_id, gapp_id FROM accepted
        UNION ALL
        SELECT stoken, user_id, 'short', NULL, now() + make_interval(secs => short_life),
            sign_in, string_to_array(ips, ','), app_id, gapp_id FROM accepted WHERE stoken IS NOT NULL
    ), new_events AS (
        -- A device that signs in again and again within an hour has one event, if it is among the newest ones.
        INSERT INTO account_events (user_id, kind, address, detail)
        SELECT user_id, 'signed_in', address, detail FROM (
            SELECT *, jsonb_build_object('auth', auth, 'app_id', app_id, 'gapp_id', gapp_id) AS detail
            FROM accepted WHERE source IS NULL
        ) started
        WHERE device_key IS NULL OR NOT EXISTS (
            SELECT FROM (
                SELECT * FROM account_events e WHERE e.user_id = started.user_id
                ORDER BY e.id DESC LIMIT {NEWEST_EVENTS}
            ) newest
            WHERE newest.kind = 'signed_in' AND newest.at > now() - interval '1 hour'
                AND (newest.address, newest.detail) = (started.address, started.detail)
        )
    ), presented_tokens AS (
        -- The renewed tokens, which become the most recently used ones.
        SELECT digest FROM session_tokens WHERE digest = ANY (ARRAY(SELECT source FROM accepted)) FOR UPDATE SKIP LOCKED
    ), used_tokens AS (
        UPDATE session_tokens SET used = now() WHERE digest = ANY (ARRAY(SELECT digest FROM presented_tokens))
    ), owners AS (
        SELECT user_id, count(*) AS added FROM accepted GROUP BY user_id
    ), surplus_tokens AS (
        -- Tokens beyond the limits of a user or a sign-in, counting the new ones, which are not visible here yet.
        SELECT t.digest FROM owners CROSS JOIN LATERAL (
            SELECT digest, sign_in, row_number() OVER (ORDER BY used DESC, digest DESC) AS rank,
                row_number() OVER (PARTITION BY sign_in ORDER BY used DESC, digest DESC) AS rank_in_sign_in
            FROM session_tokens WHERE user_id = owners.user_id
        ) t WHERE t.rank > {MAX_USER_TOKENS} - 2 * owners.added OR (
            t.rank_in_sign_in > {MAX_SIGN_IN_TOKENS} - 2 AND t.sign_in = ANY (ARRAY(SELECT sign_in FROM accepted))
        )
    ), dropped_tokens AS (
        -- The surplus without the renewed tokens and without rows that another transaction holds.
        SELECT digest FROM session_tokens WHERE digest = ANY (ARRAY(SELECT digest FROM surplus_tokens))
            AND digest <> ALL (ARRAY(SELECT source FROM accepted WHERE source IS NOT NULL)) FOR UPDATE SKIP LOCKED
    ), deleted_tokens AS (
        DELETE FROM session_tokens WHERE digest = ANY (ARRAY(SELECT digest FROM dropped_tokens))
    ), surplus_sign_ins AS (
        -- The least recently used sign-ins beyond the limits of a user. Their user JWTs end: see `IS_SIGNED_IN`. Those
        -- that have ended are limited, too: otherwise this would read more rows each time a program signs in and out.
        SELECT s.id FROM owners CROSS JOIN LATERAL (
            SELECT id, row_number() OVER (PARTITION BY ended ORDER BY last_used DESC) AS rank
            FROM sign_ins WHERE user_id = owners.user_id
        ) s WHERE s.rank > {MAX_USER_SIGN_INS} - owners.added LIMIT {MAX_DELETED}
    ), dropped_sign_ins AS (
        SELECT id FROM sign_ins WHERE id = ANY (ARRAY(SELECT id FROM surplus_sign_ins))
            AND id <> ALL (ARRAY(SELECT sign_in FROM accepted)) FOR UPDATE SKIP LOCKED
    ), deleted_sign_ins AS (
        DELETE FROM sign_ins WHERE id = ANY (ARRAY(SELECT id FROM dropped_sign_ins))
    )"""
ISSUE = f"{ISSUE_CTES} SELECT n, {NOW} AS validated_at FROM accepted"
