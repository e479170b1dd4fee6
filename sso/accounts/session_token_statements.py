"""The statements of session tokens: each serves many callers at once."""

from sso.accounts.issue_guard import NOW

USER_TOKENS = 100  # session tokens of one user; the least recently used end
USER_SIGN_INS = 100
FAMILY_TOKENS = 10  # session tokens of one sign-in, so that a program that renews often does not end those of others

# A token beyond the limit is refused here, whatever concurrent sign-ins have left in the table.
LOOK_UP = f"""SELECT item.n, u.*, t.kind, t.address, t.ips, t.app_id, t.gapp_id, t.sign_in, s.auth,
        CAST(floor(extract(epoch FROM t.expires - now())) AS int) AS life,
        CAST(floor(extract(epoch FROM s.created)) AS bigint) AS auth_time,
        CAST(floor(extract(epoch FROM s.created - now()) + item.max_s) AS int) AS longest
    FROM unnest(CAST(:digests AS bytea[]), CAST(:max_s AS float[])) WITH ORDINALITY AS item (digest, max_s, n)
    JOIN session_tokens t ON t.digest = item.digest JOIN sign_ins s ON s.id = t.sign_in
    JOIN users u ON u.user_id = t.user_id
    WHERE t.expires > now() + interval '1 second' AND s.created > now() - make_interval(secs => item.max_s - 1)
        AND NOT s.ended AND NOT u.disabled AND {USER_TOKENS} > (
            SELECT count(*) FROM (
                SELECT 1 FROM session_tokens newer
                WHERE newer.user_id = t.user_id AND (newer.used, newer.digest) > (t.used, t.digest)
                    AND newer.expires > now() LIMIT {USER_TOKENS}
            ) counted
        )"""  # noqa: S608 - the numbers are ours

# `source` is the digest of the token that is renewed, NULL for a new sign-in. The lock on a sign-in makes a renewal and
# the end of that sign-in wait for each other: whichever comes second sees the first.
ISSUE = (
    """SELECT * FROM unnest(
            CAST(:user_ids AS text[]), CAST(:valid_from AS bigint[]), CAST(:tokens AS bytea[]), CAST(:kinds AS text[]),
            CAST(:addresses AS text[]), CAST(:lives AS float[]), CAST(:stokens AS bytea[]),
            CAST(:short_lives AS float[]), CAST(:sign_ins AS text[]), CAST(:sources AS bytea[]),
            CAST(:auths AS text[]), CAST(:app_ids AS bigint[]), CAST(:gapp_ids AS bigint[]), CAST(:ips AS text[]),
            CAST(:max_s AS float[])
        ) WITH ORDINALITY AS item (user_id, valid_from, token, kind, address, life, stoken, short_life, sign_in, source,
            auth, app_id, gapp_id, ips, max_s, n)""",
    f""", live AS (
        SELECT id FROM sign_ins WHERE id = ANY (ARRAY(SELECT sign_in FROM still_valid WHERE source IS NOT NULL))
            AND NOT ended ORDER BY id FOR NO KEY UPDATE {{if_locked}}
    ), renewed AS (
        UPDATE sign_ins s SET last_used = now(), address = i.address,
            expires = s.created + make_interval(secs => i.max_s)
        FROM still_valid i WHERE s.id = ANY (ARRAY[i.sign_in]) AND s.id = ANY (ARRAY(SELECT id FROM live))
    ), begun AS (
        INSERT INTO sign_ins (id, user_id, last_used, expires, address, auth, app_id, gapp_id)
        SELECT sign_in, user_id, now(), now() + make_interval(secs => max_s), address, auth, app_id,
            gapp_id FROM still_valid WHERE source IS NULL
    ), good AS (
        SELECT * FROM still_valid WHERE source IS NULL OR sign_in = ANY (ARRAY(SELECT id FROM live))
    ), issued AS (
        INSERT INTO session_tokens (digest, user_id, kind, address, expires, sign_in, ips, app_id, gapp_id)
        SELECT token, user_id, kind, CASE kind WHEN 'bound' THEN address END, now() + make_interval(secs => life),
            sign_in, string_to_array(ips, ','), app_id, gapp_id FROM good
        UNION ALL
        SELECT stoken, user_id, 'short', NULL, now() + make_interval(secs => short_life),
            sign_in, string_to_array(ips, ','), app_id, gapp_id FROM good WHERE stoken IS NOT NULL
    ), presented AS (
        SELECT digest FROM session_tokens WHERE digest = ANY (ARRAY(SELECT source FROM good)) FOR UPDATE SKIP LOCKED
    ), used AS (
        UPDATE session_tokens SET used = now() WHERE digest = ANY (ARRAY(SELECT digest FROM presented))
    ), owner AS (
        SELECT user_id, count(*) AS added FROM good GROUP BY user_id
    ), surplus AS (
        SELECT t.digest FROM owner CROSS JOIN LATERAL (
            SELECT digest, sign_in, row_number() OVER (ORDER BY used DESC, digest DESC) AS rank,
                row_number() OVER (PARTITION BY sign_in ORDER BY used DESC, digest DESC) AS rank_in_sign_in
            FROM session_tokens WHERE user_id = owner.user_id
        ) t WHERE t.rank > {USER_TOKENS} - 2 * owner.added OR (
            t.rank_in_sign_in > {FAMILY_TOKENS} - 2 AND t.sign_in = ANY (ARRAY(SELECT sign_in FROM good))
        )
    ), unwanted AS (
        SELECT digest FROM session_tokens WHERE digest = ANY (ARRAY(SELECT digest FROM surplus))
            AND digest <> ALL (ARRAY(SELECT source FROM good WHERE source IS NOT NULL)) FOR UPDATE SKIP LOCKED
    ), dropped AS (
        DELETE FROM session_tokens WHERE digest = ANY (ARRAY(SELECT digest FROM unwanted))
    ), oldest AS (
        SELECT s.id FROM owner CROSS JOIN LATERAL (
            SELECT id FROM sign_ins WHERE user_id = owner.user_id AND NOT ended
            ORDER BY last_used DESC OFFSET greatest(0, {USER_SIGN_INS} - owner.added)
        ) s
    ), forgotten AS (
        SELECT id FROM sign_ins WHERE id = ANY (ARRAY(SELECT id FROM oldest))
            AND id <> ALL (ARRAY(SELECT sign_in FROM good)) FOR UPDATE SKIP LOCKED
    ), removed AS (
        DELETE FROM sign_ins WHERE id = ANY (ARRAY(SELECT id FROM forgotten))
    )
    SELECT n, {NOW} AS moment FROM good""",  # noqa: S608 - the parts are ours
)
