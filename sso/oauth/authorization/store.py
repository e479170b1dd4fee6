"""Pending authorizations, consents and new authorization codes in the database. Each method is one transaction."""

from collections.abc import Sequence
from typing import Any

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.session_store import Session
from sso.core.ban import BANNED, Ban
from sso.core.ids import digest, secret_token
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.oauth.clients.redirect_uris import match_redirect_uri
from sso.oauth.errors import AuthorizationError, AuthorizationFinished, InvalidRedirectUri
from sso.oauth.model import AuthorizationRequest, Client, PendingAuthorization

_SAVE = BatchStatement(
    """WITH item AS (
        SELECT * FROM {items}
    ), locked_clients AS (
        -- Rows are locked in key order, so that two batches cannot deadlock.
        SELECT client_id FROM oauth_clients WHERE client_id = ANY (ARRAY(SELECT client_id FROM item))
        ORDER BY client_id FOR KEY SHARE {if_locked}
    ), saved AS (
        -- The pending authorizations of clients that still exist.
        INSERT INTO oauth_requests (digest, client_id, redirect_uri, scopes, state, nonce, challenge, prompts,
            login_hint, sub, ui_locales, response_mode, dpop_jkt, resources, acr_values, claims, login_after, expires)
        SELECT digest, client_id, redirect_uri, string_to_array(scopes, ' '), state, nonce, challenge,
            string_to_array(prompts, ' '), login_hint, sub, ui_locales, response_mode, dpop_jkt,
            string_to_array(resources, ' '), string_to_array(acr_values, ' '), claims,
            now() - make_interval(secs => max_age), now() + make_interval(secs => lifetime_s)
        FROM item JOIN locked_clients USING (client_id) RETURNING digest, created, expires, login_after
    )
    SELECT item.n, saved.created, saved.expires, saved.login_after FROM saved JOIN item USING (digest)""",
    columns={
        "digest": "bytea",
        "client_id": "text",
        "redirect_uri": "text",
        "scopes": "text",
        "state": "bytea",
        "nonce": "text",
        "challenge": "text",
        "prompts": "text",
        "login_hint": "text",
        "sub": "text",
        "ui_locales": "text",
        "response_mode": "text",
        "dpop_jkt": "text",
        "resources": "text",
        "acr_values": "text",
        "claims": "text",
        "max_age": "float",
        "lifetime_s": "float",
    },
)
_FIND = BatchStatement(
    """SELECT item.n, c.*, r.redirect_uri, r.scopes, r.state, r.nonce, r.challenge, r.prompts, r.login_hint, r.sub,
        r.ui_locales, r.response_mode, r.dpop_jkt, r.resources, r.acr_values, r.claims, r.login_after,
        r.created AS request_created, r.expires
    FROM {items}
    JOIN oauth_requests r ON r.digest = item.digest JOIN oauth_clients c USING (client_id)
    WHERE r.expires > now() AND NOT c.disabled""",
    columns={"digest": "bytea"},
)
_REQUIRE_NEW_LOGIN = Statement("UPDATE oauth_requests SET login_after = now() WHERE digest = :digest")
_FINISH = Statement("DELETE FROM oauth_requests WHERE digest = :digest AND expires > now() RETURNING digest")
_FIND_CONSENT = Statement("SELECT scopes FROM oauth_consents WHERE user_id = :user_id AND client_id = :client_id")
_SAVE_CONSENT = Statement(
    """INSERT INTO oauth_consents AS old (user_id, client_id, scopes)
    SELECT u.user_id, c.client_id, CAST(:scopes AS text[])
    FROM users u JOIN browser_sessions s USING (user_id) JOIN oauth_clients c ON c.client_id = :client_id
    WHERE s.digest = :session AND s.expires > now() AND NOT u.disabled AND NOT c.disabled FOR SHARE OF u
    ON CONFLICT (user_id, client_id) DO UPDATE
    SET scopes = ARRAY(SELECT DISTINCT unnest(old.scopes || excluded.scopes)), created = now() RETURNING user_id"""
)
# The statement reads the browser session again, so that no code is issued after a sign-out. A transaction that revokes
# everything of the user either commits first or waits for the locks. The locks are taken in the same order everywhere:
# the user, then the client, and rows of one table in key order.
_ISSUE_CODE = BatchStatement(
    """WITH item AS (
        SELECT * FROM {items}
    ), locked_users AS (
        -- The users who are not disabled.
        SELECT user_id, valid_from, bans FROM users
        WHERE user_id = ANY (ARRAY(SELECT user_id FROM item)) AND NOT disabled
        ORDER BY user_id FOR SHARE {if_locked}
    ), locked_clients AS (
        -- The clients that still exist.
        SELECT client_id, application_id FROM oauth_clients WHERE client_id = ANY (ARRAY(SELECT client_id FROM item))
        ORDER BY client_id FOR KEY SHARE {if_locked}
    ), valid_sessions AS (
        -- The browser sessions that have not ended.
        SELECT digest, user_id, created, authenticated, auth, coalesce(sid, id) AS sid FROM browser_sessions
        WHERE digest = ANY (ARRAY(SELECT session FROM item JOIN locked_users USING (user_id))) AND expires > now()
        ORDER BY digest FOR SHARE
    ), signed_in AS (
        -- The items whose user is still signed in. Without a session, a pending authorization stays pending.
        SELECT item.*, valid_sessions.created, valid_sessions.authenticated, valid_sessions.auth, valid_sessions.sid,
            locked_users.valid_from, ban_in_force(locked_users.bans, ARRAY[locked_clients.application_id]) AS ban
        FROM item JOIN locked_users USING (user_id) JOIN locked_clients USING (client_id)
            JOIN valid_sessions ON valid_sessions.digest = item.session AND valid_sessions.user_id = item.user_id
    ), locked_requests AS (
        -- Their pending authorizations, if they have one.
        SELECT digest FROM oauth_requests WHERE digest = ANY (ARRAY(SELECT request FROM signed_in)) AND expires > now()
        ORDER BY digest FOR UPDATE
    ), finished AS (
        -- The items whose pending authorization is finished by this statement: each one only once.
        DELETE FROM oauth_requests r USING locked_requests, signed_in p
        WHERE r.digest = locked_requests.digest AND r.digest = p.request AND p.ban IS NULL
        RETURNING p.n
    ), new_codes AS (
        -- A code for each item that has no pending authorization or has finished it.
        INSERT INTO oauth_codes (digest, client_id, user_id, redirect_uri, scopes, nonce, challenge, auth_time, auth,
            sid, dpop_jkt, resources, claims, issued, expires)
        SELECT p.digest, c.client_id, p.user_id, p.redirect_uri, string_to_array(p.scopes, ' '), p.nonce, p.challenge,
            CASE WHEN p.authenticated IS NULL THEN 0 ELSE floor(extract(epoch FROM p.created)) END, p.auth, p.sid,
            p.dpop_jkt, string_to_array(p.resources, ' '), p.claims,
            greatest(floor(extract(epoch FROM now())), p.valid_from),
            least(p.expires, now() + make_interval(secs => p.lifetime_s)) -- the first is NULL without a pending one
        FROM signed_in p JOIN oauth_clients c ON c.client_id = p.client_id AND NOT c.disabled
        WHERE p.ban IS NULL AND (p.request IS NULL OR p.n IN (SELECT n FROM finished))
        RETURNING digest
    )
    SELECT n, digest IN (SELECT digest FROM new_codes) AS is_issued, ban FROM signed_in""",
    columns={
        "digest": "bytea",
        "client_id": "text",
        "user_id": "text",
        "session": "bytea",
        "redirect_uri": "text",
        "scopes": "text",
        "nonce": "text",
        "challenge": "text",
        "dpop_jkt": "text",
        "resources": "text",
        "claims": "text",
        "expires": "timestamptz",
        "lifetime_s": "float",
        "request": "bytea",
    },
)
_STORED_FIELDS = (
    "state", "nonce", "challenge", "login_hint", "sub", "ui_locales", "response_mode", "dpop_jkt", "claims",
)  # fmt: skip


class AuthorizationStore:
    def __init__(self, database: Database, lifetime_s: int, *, allow_http: bool) -> None:
        self._database = database
        self._lifetime_s = lifetime_s
        self._allow_http = allow_http
        self._find = Batch(database, _FIND)
        self._save = SkipLockedBatch(database, _SAVE)
        self._issue_code = SkipLockedBatch(database, _ISSUE_CODE)

    async def save(self, request: AuthorizationRequest) -> PendingAuthorization:
        """Saves the request, to be resumed after the user has signed in or consented."""
        request_id = secret_token()
        row = await self._save(
            digest=digest(request_id),
            client_id=request.client.client_id,
            redirect_uri=request.redirect.uri,
            scopes=" ".join(request.scopes),
            state=request.state,
            nonce=request.nonce,
            challenge=request.challenge,
            prompts=" ".join(sorted(request.prompts)),
            login_hint=request.login_hint,
            sub=request.sub,
            ui_locales=request.ui_locales,
            response_mode=request.response_mode,
            dpop_jkt=request.dpop_jkt,
            resources=" ".join(request.resources),
            acr_values=" ".join(request.acr_values),
            claims=request.claims,
            max_age=0.0 if "login" in request.prompts else _seconds(request.max_age),
            lifetime_s=float(self._lifetime_s),
        )
        if row is None:
            raise InvalidRedirectUri("the client was deleted during the request")
        return PendingAuthorization(request_id, request, row["created"], row["expires"], row["login_after"])

    async def find(self, request_id: str) -> PendingAuthorization | None:
        """Returns None if the authorization is finished or has expired.

        Raises InvalidRedirectUri if the redirect URI no longer belongs to the client.
        """
        row = await self._find(digest=digest(request_id))
        if row is None:
            return None
        request = self._request_from_row(row)
        return PendingAuthorization(request_id, request, row["request_created"], row["expires"], row["login_after"])

    def _request_from_row(self, row: Row) -> AuthorizationRequest:
        client = Client.from_row(row)
        redirect = match_redirect_uri(
            row["redirect_uri"], client.redirect_hosts, client.redirect_uris, allow_http=self._allow_http
        )
        if isinstance(redirect, str):
            raise InvalidRedirectUri(f"redirect_uri: {redirect}")
        values: dict[str, Any] = {name: row[name] for name in _STORED_FIELDS}
        return AuthorizationRequest(
            client=client,
            redirect=redirect,
            scopes=tuple(row["scopes"]),
            prompts=frozenset(row["prompts"]),
            resources=tuple(row["resources"]),
            acr_values=tuple(row["acr_values"]),
            **values,
        )

    async def require_new_login(self, request_id: str) -> None:
        """From now on the authorization accepts only a later sign-in, still of the user that the client requires."""
        await self._database.value(_REQUIRE_NEW_LOGIN, digest=digest(request_id))

    async def consented_scopes(self, user_id: str, client_id: str) -> frozenset[str]:
        scopes = await self._database.value(_FIND_CONSENT, user_id=user_id, client_id=client_id)
        return frozenset(scopes or ())

    async def save_consent(self, session: Session, client: Client, scopes: Sequence[str]) -> None:
        """Saves the consent of the session's user. Does nothing if the session has ended."""

        async def work(tx: Transaction) -> None:
            values = {"client_id": client.client_id, "scopes": list(scopes)}
            user_id = await tx.value(_SAVE_CONSENT, session=digest(session.secret), **values)
            if user_id is not None:
                await record_event(tx, user_id, EventKind.SITE_GRANTED, name=client.title)

        await self._database.transaction(work)

    async def issue_code(
        self, request: AuthorizationRequest, session: Session, pending: PendingAuthorization | None
    ) -> str | None:
        """Returns a new code for the session's user, or None if the session has ended.

        Finishes ``pending``; raises AuthorizationFinished if it is finished already. The code expires when ``pending``
        does, or before, because the OAuth session begins with the authorization request and not with the sign-in.
        Raises AuthorizationError if the user is banned at the application of the client.
        """
        code = secret_token()
        row = await self._issue_code(
            digest=digest(code),
            client_id=request.client.client_id,
            user_id=session.user.user_id,
            session=digest(session.secret),
            redirect_uri=request.redirect.uri,
            scopes=" ".join(request.scopes),
            nonce=request.nonce,
            challenge=request.challenge,
            dpop_jkt=request.dpop_jkt,
            resources=" ".join(request.resources),
            claims=request.claims,
            expires=pending.expires if pending else None,
            lifetime_s=float(request.client.rules.code_s or self._lifetime_s),
            request=digest(pending.id) if pending else None,
        )
        if row is None:
            return None
        if row["ban"]:
            raise AuthorizationError("access_denied", Ban.from_json(row["ban"]).description, recorded=BANNED)
        if not row["is_issued"]:
            raise AuthorizationFinished
        return code

    async def finish(self, request_id: str) -> None:
        """Finishes the authorization without a code; raises AuthorizationFinished if it is finished already."""
        if await self._database.value(_FINISH, digest=digest(request_id)) is None:
            raise AuthorizationFinished


def _seconds(max_age: int | None) -> float | None:
    return None if max_age is None else float(max_age)
