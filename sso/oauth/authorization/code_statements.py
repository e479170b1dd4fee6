"""The statements that issue authorization codes: to a user who is signed in, and together with the sign-in."""

from sso.db.batch.statement import BatchStatement

CODE_COLUMNS = {
    "code": "bytea",
    "client_id": "text",
    "redirect_uri": "text",
    "scopes": "text",
    "nonce": "text",
    "challenge": "text",
    "dpop_jkt": "text",
    "resources": "text",
    "claims": "text",
    "expires": "timestamptz",
    "lifetime_s": "float",
    "request": "bytea",  # the pending authorization, NULL without one
    "login_after": "timestamptz",  # of the pending authorization, when it was read
    "client_version": "text",  # of the client, when it was read; NULL if that was in this request
}
# ``{0}`` are the items whose users are locked: so the users are locked before the clients.
_LOCKED_CLIENTS = """locked_clients AS (
        -- The clients that still exist.
        SELECT client_id, application_id, disabled, CAST(xmin AS text) AS version FROM oauth_clients
        WHERE client_id = ANY (ARRAY(SELECT client_id FROM {0}))
        ORDER BY client_id FOR KEY SHARE {{if_locked}}
    )"""
# ``signed_in`` has the items whose user may get a code: with ``ban`` of the client's application, and ``disabled``.
_NEW_CODES = """locked_requests AS (
        -- Their pending authorizations, if they have one.
        SELECT digest, login_after FROM oauth_requests
        WHERE digest = ANY (ARRAY(SELECT request FROM signed_in)) AND expires > now() ORDER BY digest FOR UPDATE
    ), finished AS (
        -- The items whose pending authorization is finished by this statement: each one only once, and only if no new
        -- sign-in has been demanded since it was read.
        DELETE FROM oauth_requests r USING locked_requests l, signed_in p
        WHERE r.digest = l.digest AND r.digest = p.request AND p.ban IS NULL AND NOT p.disabled
            AND l.login_after IS NOT DISTINCT FROM p.login_after
        RETURNING p.n
    ), new_codes AS (
        -- A code for each item that has no pending authorization or has finished it.
        INSERT INTO oauth_codes (digest, client_id, user_id, redirect_uri, scopes, nonce, challenge, auth_time, auth,
            sid, dpop_jkt, resources, claims, issued, expires)
        SELECT p.code, p.client_id, p.user_id, p.redirect_uri, string_to_array(p.scopes, ' '), p.nonce, p.challenge,
            CASE WHEN p.authenticated IS NULL THEN 0 ELSE floor(extract(epoch FROM p.created)) END, p.auth, p.sid,
            p.dpop_jkt, string_to_array(p.resources, ' '), p.claims,
            greatest(floor(extract(epoch FROM now())), p.valid_from),
            least(p.expires, now() + make_interval(secs => p.lifetime_s)) -- the first is NULL without a pending one
        FROM signed_in p
        WHERE p.ban IS NULL AND NOT p.disabled AND (p.request IS NULL OR p.n IN (SELECT n FROM finished))
        RETURNING digest
    )"""
_SAME_CLIENT = "locked_clients.version = coalesce(item.client_version, locked_clients.version)"
# The statement reads the browser session again, so that no code is issued after a sign-out. A transaction that revokes
# everything of the user either commits first or waits for the locks. The locks are taken in the same order everywhere:
# the user, then the client, and rows of one table in key order.
ISSUE_CODE = BatchStatement(
    f"""WITH item AS (
        SELECT * FROM {{items}}
    ), locked_users AS (
        -- The users who are not disabled.
        SELECT user_id, valid_from, bans FROM users
        WHERE user_id = ANY (ARRAY(SELECT user_id FROM item)) AND NOT disabled
        ORDER BY user_id FOR SHARE {{if_locked}}
    ), {_LOCKED_CLIENTS.format("item JOIN locked_users USING (user_id)")}, valid_sessions AS (
        -- The browser sessions that have not ended.
        SELECT digest, user_id, created, authenticated, auth, coalesce(sid, id) AS sid FROM browser_sessions
        WHERE digest = ANY (ARRAY(SELECT session FROM item JOIN locked_users USING (user_id))) AND expires > now()
        ORDER BY digest FOR SHARE
    ), signed_in AS (
        -- The items whose user is still signed in and whose client has not changed. For the others, a pending
        -- authorization stays pending.
        SELECT item.*, valid_sessions.created, valid_sessions.authenticated, valid_sessions.auth, valid_sessions.sid,
            locked_users.valid_from, locked_clients.disabled,
            ban_in_force(locked_users.bans, ARRAY[locked_clients.application_id]) AS ban
        FROM item JOIN locked_users USING (user_id) JOIN locked_clients USING (client_id)
            JOIN valid_sessions ON valid_sessions.digest = item.session AND valid_sessions.user_id = item.user_id
        WHERE {_SAME_CLIENT}
    ), {_NEW_CODES}
    SELECT n, code IN (SELECT digest FROM new_codes) AS is_issued, ban FROM signed_in""",
    columns={"user_id": "text", "session": "bytea", **CODE_COLUMNS},
)
# For `sso.accounts.sign_in_extension.extended_sign_in`: a code for the new session of a user with a correct password.
CODE_AT_SIGN_IN = f""", {_LOCKED_CLIENTS.format("new_items")}, signed_in AS (
        -- The new sessions whose client has not changed.
        SELECT item.n, item.code, item.client_id, item.user_id, item.redirect_uri, item.scopes, item.nonce,
            item.challenge, item.dpop_jkt, item.resources, item.claims, item.expires, item.lifetime_s, item.request,
            item.login_after, new_sessions.created, new_sessions.authenticated, item.auth,
            coalesce(item.sid, item.id) AS sid, valid_users.valid_from, locked_clients.disabled,
            ban_in_force(valid_users.bans, ARRAY[locked_clients.application_id]) AS ban
        FROM new_items item JOIN new_sessions USING (digest) JOIN valid_users USING (user_id)
            JOIN locked_clients USING (client_id)
        WHERE {_SAME_CLIENT}
    ), {_NEW_CODES}"""
IS_CODE_ISSUED = ", code IN (SELECT digest FROM new_codes) AS is_issued"
