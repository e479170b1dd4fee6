"""The SQL of the token store.

Redeeming a code and rotating a refresh token are one statement each, so concurrent requests cannot both succeed. The
same statement checks that the user and the client may still get tokens.
"""

from sso.db.batch.statement import BatchStatement, by_index
from sso.db.known_users import delete_grants
from sso.db.statement import Statement

MAX_CODE_FAILURES = 20

# The time of the transaction, in whole seconds.
CLOCK = "clock AS (SELECT CAST(floor(extract(epoch FROM now())) AS bigint) AS t)"
# The claims about the user.
USER_CLAIMS = """u.login, u.nick, u.lang, u.email_verified,
            CAST(floor(extract(epoch FROM coalesce(u.updated, u.reg_time))) AS bigint) AS updated_at"""
# The client may have changed since it was authenticated. ``matched_secret`` is the encrypted secret that matched the
# credentials, "" for a public client, and the JWK set or its address for private_key_jwt: it must still be that of the
# client, and the profile and the authentication method must be the same.
AUTHENTICATED = """NOT c.disabled AND c.profile = item.profile
                AND c.token_endpoint_auth_method = item.auth_method
                AND ((item.matched_secret = c.secret_sealed AND coalesce(c.secret_expires > now(), true))
                OR (item.matched_secret = c.second_sealed AND coalesce(c.second_expires > now(), true))
                OR (item.matched_secret = '' AND c.secret_sealed IS NULL AND c.profile = 'oidc')
                -- a client has its keys in one of both places
                OR (item.matched_secret = c.jwks || c.jwks_uri AND item.matched_secret <> ''
                    AND c.token_endpoint_auth_method = 'private_key_jwt'))"""

# If the code or grant has a key, the request proves the same one; a client that must have a key has one.
_KEY_MATCHES = """({0}.dpop_jkt IS NULL OR {0}.dpop_jkt = item.dpop_jkt)
                AND (item.dpop_jkt IS NOT NULL OR NOT c.dpop_bound_access_tokens)"""
# If the code or grant names resources, the request names some of them. If it names none, a client that registered
# itself cannot name any later: the user has not allowed it to act there.
_RESOURCES_MATCH = """(item.resources IS NULL OR string_to_array(item.resources, ' ') <@ {0}.resources
                OR (cardinality({0}.resources) = 0 AND c.registered_by = ''))"""

# Issues the first tokens of grants. ``redeemed`` has a row for each new grant. ISSUED are columns of the result.
NEW_GRANTS = """new_grants AS (
        -- One grant for each redeemed code. It has a current refresh token only with offline_access.
        INSERT INTO oauth_grants AS g (id, client_id, user_id, redirect_uri, scopes, nonce, auth_time, auth, sid,
            issued, dpop_jkt, resources, claims, ends, head, head_issued, head_exp, last_used, expires)
        SELECT grant_id, client_id, user_id, redirect_uri, scopes, nonce, auth_time, auth, sid, issued, grant_jkt,
            grant_resources, claims, t + grant_max_s, current_token_id,
            CASE WHEN current_token_id IS NOT NULL THEN t END,
            CASE WHEN current_token_id IS NOT NULL THEN t + least(refresh_s, grant_max_s) END, now(),
            to_timestamp(t + least(grant_max_s,
                greatest(access_s, CASE WHEN current_token_id IS NOT NULL THEN refresh_s END)))
        FROM redeemed, clock
        RETURNING g.id, g.head_issued, g.head_exp
    ), new_access_tokens AS (
        -- The first access token of each grant.
        INSERT INTO oauth_access_tokens (digest, grant_id, expires, dpop_jkt, resources)
        SELECT access_digest, grant_id, to_timestamp(t + least(access_s, grant_max_s)), dpop_jkt, resources
        FROM redeemed, clock
    ), notified_sites AS (
        -- The sites that want to be notified when the browser session ends.
        INSERT INTO oauth_site_sessions (sid, client_id, user_id, expires)
        SELECT DISTINCT ON (sid, client_id) sid, client_id, user_id, to_timestamp(t + session_s)
        FROM redeemed, clock WHERE is_notified AND sid IS NOT NULL ORDER BY sid, client_id
        ON CONFLICT (sid, client_id) DO UPDATE SET expires = excluded.expires
    )"""
ISSUED = """t AS now, t AS issued_at, t + least(access_s, grant_max_s) AS access_exp,
        new_grants.head_issued AS current_token_issued, new_grants.head_exp AS current_token_exp"""

COUNT_FAILURE = Statement(
    "UPDATE oauth_codes SET failures = failures + 1 WHERE digest = :digest AND redeemed IS NULL RETURNING failures"
)
# The client is the one that the request names; if it names none, the one that the code was issued to. An item is
# skipped if the user or client of its code is locked: it gets no row and has no effect. The locks are taken in the same
# order everywhere: the user, then the client, and rows of one table in key order.
REDEEM = BatchStatement(
    f"""WITH {CLOCK}, item AS (
        SELECT * FROM {{items}}
    ), items_with_code AS (
        -- A code never changes its user and its client.
        SELECT item.n, k.digest, k.user_id, k.client_id
        FROM item JOIN oauth_codes k ON {by_index("k.digest", "item.digest")} WHERE k.expires > now()
    ), items_with_user AS (
        SELECT k.* FROM items_with_code k JOIN users u ON {by_index("u.user_id", "k.user_id")}
        ORDER BY k.user_id FOR KEY SHARE OF u {{if_locked}}
    ), items_with_client AS (
        SELECT k.* FROM items_with_user k JOIN oauth_clients c ON {by_index("c.client_id", "k.client_id")}
        ORDER BY k.client_id FOR KEY SHARE OF c {{if_locked}}
    ), locked_codes AS (
        SELECT locked.n, k.* FROM items_with_client locked JOIN oauth_codes k ON {by_index("k.digest", "locked.digest")}
        ORDER BY locked.digest FOR NO KEY UPDATE OF k
    ), checked AS (
        -- Each item with the result of every check.
        SELECT k.digest, item.n, item.grant_id, item.access_digest, item.access_s, item.refresh_s, item.grant_max_s,
            CASE WHEN 'offline_access' = ANY (k.scopes) AND 'refresh_token' = ANY (c.grant_types)
                THEN item.token_id END AS current_token_id,
            c.client_id, c.profile, c.id_alg, c.access_token_format, k.user_id, {USER_CLAIMS}, k.redirect_uri,
            k.scopes, k.nonce, k.auth_time, k.auth, k.sid, k.issued, item.dpop_jkt, item.grant_jkt, item.session_s,
            k.claims, c.backchannel_logout_uri <> '' AS is_notified, k.resources AS grant_resources,
            coalesce(string_to_array(item.resources, ' '), k.resources) AS resources,
            ban_in_force(u.bans, ARRAY[c.application_id]) AS ban,
            item.may_redeem AND NOT u.disabled AND ban_in_force(u.bans, ARRAY[c.application_id]) IS NULL
                AND k.issued >= u.valid_from AND k.failures < {MAX_CODE_FAILURES}
                AND 'authorization_code' = ANY (c.grant_types)
                AND jsonb_build_array(c.redirect_hosts, c.redirect_uris) = CAST(item.client_redirects AS jsonb)
                AS is_redeemable,
            k.client_id AS code_client_id, k.redeemed IS NOT NULL AS is_redeemed,
            coalesce({AUTHENTICATED}, false) AS authenticated,
            coalesce(k.redirect_uri = item.redirect_uri, false) AS redirect_uri_matches,
            coalesce(k.client_id = c.client_id AND k.challenge IS NOT DISTINCT FROM item.challenge, false)
                AS holder_matches,
            coalesce({_KEY_MATCHES.format("k")}, false) AS key_matches,
            coalesce({_RESOURCES_MATCH.format("k")}, false) AS resources_match
        FROM item LEFT JOIN locked_codes k ON k.n = item.n AND k.expires > now()
        JOIN oauth_clients c ON {by_index("c.client_id", "coalesce(nullif(item.client_id, ''), k.client_id)")}
        LEFT JOIN users u ON {by_index("u.user_id", "k.user_id")}
        -- Without `SKIP LOCKED`, only a code that was deleted concurrently is not locked.
        WHERE '{{if_locked}}' = '' OR item.n IN (SELECT n FROM items_with_client)
            OR item.n NOT IN (SELECT n FROM items_with_code)
    ), redeemed AS (
        -- The codes that this statement redeems. A redeemed code is kept for a day, to detect a replay.
        UPDATE oauth_codes k SET redeemed = now(), grant_id = s.grant_id, expires = now() + interval '1 day'
        FROM checked s WHERE {by_index("k.digest", "s.digest")} AND k.redeemed IS NULL AND s.is_redeemable
            AND s.authenticated AND s.redirect_uri_matches AND s.holder_matches AND s.key_matches AND s.resources_match
        RETURNING s.*
    ), {NEW_GRANTS}
    -- The client is read if nothing was issued. Columns of the item come last, because some have the same names.
    SELECT c.*, s.*, new_grants.id IS NOT NULL AS is_issued, {ISSUED}
    FROM clock, checked s LEFT JOIN new_grants ON new_grants.id = s.grant_id
    LEFT JOIN oauth_clients c ON {by_index("c.client_id", "s.client_id")} AND new_grants.id IS NULL""",
    columns={
        "digest": "bytea",
        "client_id": "text",
        "matched_secret": "text",
        "profile": "text",
        "auth_method": "text",
        "client_redirects": "text",
        "redirect_uri": "text",
        "challenge": "text",
        "may_redeem": "boolean",
        "dpop_jkt": "text",
        "grant_jkt": "text",
        "resources": "text",
        "grant_id": "text",
        "token_id": "text",
        "access_digest": "bytea",
        "access_s": "bigint",
        "refresh_s": "bigint",
        "grant_max_s": "bigint",
        "session_s": "bigint",
    },
)
REVOKE_GRANT_OF_CODE = Statement(delete_grants("USING oauth_codes k WHERE k.digest = :digest AND g.id = k.grant_id"))
ROTATE = BatchStatement(
    f"""WITH {CLOCK}, item AS (
        SELECT * FROM {{items}}
    ), locked_grants AS (
        -- Rows are locked in key order, so that two batches cannot deadlock.
        SELECT id FROM oauth_grants WHERE id = ANY (ARRAY(SELECT grant_id FROM item))
        ORDER BY id FOR NO KEY UPDATE {{if_locked}}
    ), checked AS (
        -- Each item with the result of every check, as of the statement's snapshot; without those that are skipped,
        -- because their grant is locked.
        SELECT item.*, {USER_CLAIMS}, g.head AS snapshot_token_id, g.redirect_uri AS grant_redirect_uri,
            g.id IS NOT NULL AS grant_exists,
            coalesce({AUTHENTICATED}, false) AS authenticated,
            coalesce(g.redirect_uri = item.redirect_uri OR (item.redirect_uri = '' AND c.profile <> 'strict'), false)
                AS redirect_uri_matches,
            coalesce({_KEY_MATCHES.format("g")}, false) AS key_matches,
            coalesce({_RESOURCES_MATCH.format("g")}, false) AS resources_match,
            coalesce(string_to_array(item.scopes, ' ') <@ g.scopes, true) AS scopes_match,
            ban_in_force(u.bans, ARRAY[c.application_id]) AS ban,
            coalesce(NOT u.disabled AND ban_in_force(u.bans, ARRAY[c.application_id]) IS NULL
                AND g.issued >= u.valid_from AND g.head_exp > t AND g.ends > t
                AND 'refresh_token' = ANY (c.grant_types), false) AS grant_valid
        FROM clock, item JOIN oauth_clients c ON c.client_id = item.client_id
        LEFT JOIN oauth_grants g ON g.id = item.grant_id AND g.client_id IS NOT DISTINCT FROM item.client_id
        LEFT JOIN users u ON u.user_id = g.user_id
        WHERE '{{if_locked}}' = '' OR g.id IS NULL OR g.id IN (SELECT id FROM locked_grants)
    ), rotated_grants AS (
        -- The grants whose current token was presented: they get a new current token.
        UPDATE oauth_grants g SET head = s.new_token_id, previous = g.head, rotated = now(), last_used = now(),
            head_issued = t, head_exp = least(t + s.refresh_s, g.ends), dpop_jkt = coalesce(g.dpop_jkt, s.grant_jkt),
            expires = to_timestamp(greatest(least(t + s.refresh_s, g.ends), least(t + s.access_s, g.ends)))
        FROM clock, locked_grants, checked s
        WHERE g.id = locked_grants.id AND g.id = s.grant_id AND g.head = s.token_id
            AND s.authenticated AND s.redirect_uri_matches AND s.grant_valid AND s.key_matches AND s.resources_match
            AND s.scopes_match
        RETURNING s.n, g.id, g.user_id, g.scopes, g.nonce, g.auth_time, g.auth, g.sid, g.ends, g.head,
            g.head_issued, g.head_exp, g.resources, g.claims, t AS issued_at
    ), retried_grants AS (
        -- Retries get the current token once more: the previous token was presented again within the leeway, or with
        -- the idempotency key that the current token was derived from.
        SELECT s.n, g.id, g.user_id, g.scopes, g.nonce, g.auth_time, g.auth, g.sid, g.ends, g.head, g.head_issued,
            g.head_exp, g.resources, g.claims,
            CASE WHEN g.head = s.new_token_id AND g.head <> s.token_id THEN g.head_issued ELSE t END AS issued_at
        FROM clock, checked s JOIN locked_grants ON locked_grants.id = s.grant_id
            JOIN oauth_grants g ON g.id = locked_grants.id
        WHERE s.authenticated AND s.redirect_uri_matches AND s.grant_valid AND s.key_matches AND s.resources_match
            AND s.scopes_match
            -- Concurrent requests with a token that is not replaced get an access token each.
            AND ((s.token_id = s.new_token_id AND g.head = s.token_id
                AND NOT EXISTS (SELECT FROM rotated_grants WHERE rotated_grants.n = s.n))
            -- With a leeway of 0 there are no retries, even if this transaction began before the rotation that it sees.
            OR (g.previous = s.token_id AND s.token_id <> s.new_token_id
            AND ((s.leeway_s > 0 AND g.rotated > now() - make_interval(secs => s.leeway_s))
                OR (g.head = s.new_token_id AND g.rotated > now() - make_interval(secs => s.retry_s)))
            -- The same access token is not issued again after it was revoked.
            AND (g.head <> s.new_token_id
                OR EXISTS (SELECT FROM oauth_access_tokens a WHERE a.digest = s.access_digest))
            AND NOT EXISTS (SELECT FROM rotated_grants WHERE rotated_grants.id = g.id)))
    ), issued AS (
        -- The grants that get new tokens.
        SELECT * FROM rotated_grants UNION ALL SELECT * FROM retried_grants
    ), new_access_tokens AS (
        -- One access token for each of them, unless a retry gets the same one.
        INSERT INTO oauth_access_tokens (digest, grant_id, expires, dpop_jkt, resources, scopes)
        SELECT s.access_digest, issued.id, to_timestamp(least(issued_at + s.access_s, issued.ends)), s.dpop_jkt,
            coalesce(string_to_array(s.resources, ' '), issued.resources), string_to_array(s.scopes, ' ')
        FROM issued JOIN checked s ON s.n = issued.n
        ON CONFLICT (digest) DO NOTHING
    )
    SELECT c.*, s.n, s.grant_exists, s.authenticated, s.redirect_uri_matches, s.grant_valid, s.ban,
        s.grant_redirect_uri,
        s.key_matches, s.resources_match, s.scopes_match, s.dpop_jkt,
        coalesce(string_to_array(s.resources, ' '), issued.resources) AS resources,
        s.snapshot_token_id, s.login, s.nick, s.lang, s.email_verified, s.updated_at, issued.id AS grant_id,
        issued.user_id, issued.scopes, issued.nonce, issued.auth_time, issued.auth, issued.sid, issued.claims,
        issued.head AS current_token_id, issued.head_issued AS current_token_issued,
        issued.head_exp AS current_token_exp, t AS now, issued_at,
        least(issued_at + s.access_s, issued.ends) AS access_exp
    FROM clock, checked s JOIN oauth_clients c ON c.client_id = s.client_id LEFT JOIN issued ON issued.n = s.n""",
    columns={
        "client_id": "text",
        "grant_id": "text",
        "token_id": "text",
        "redirect_uri": "text",
        "matched_secret": "text",
        "profile": "text",
        "auth_method": "text",
        "dpop_jkt": "text",
        "grant_jkt": "text",
        "resources": "text",
        "scopes": "text",
        "new_token_id": "text",
        "access_digest": "bytea",
        "access_s": "bigint",
        "refresh_s": "bigint",
        "leeway_s": "bigint",
        "retry_s": "bigint",
    },
)
# Whether a refresh token may be the current one, or the previous one that is repeated, of a grant with this key.
IS_REFRESHABLE = Statement(
    """SELECT EXISTS (SELECT FROM oauth_grants WHERE id = :grant_id AND client_id = :client_id
        AND CAST(:token_id AS text) IN (head, previous) AND (dpop_jkt IS NULL OR dpop_jkt = :jkt))"""
)
REVOKE_REFRESH_TOKEN = Statement(
    delete_grants(
        """USING users u
        WHERE g.id = :grant_id AND g.client_id = :client_id AND g.head = :token_id
            AND u.user_id = g.user_id AND NOT u.disabled AND g.issued >= u.valid_from
            AND g.head_exp > extract(epoch FROM now())"""
    )
)
REVOKE_GRANT = Statement(delete_grants("WHERE g.id = :grant_id AND g.client_id = :client_id"))
