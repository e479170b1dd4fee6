"""Pending authorizations, consents and new authorization codes in the database. Each method is one transaction."""

from collections.abc import Sequence
from typing import Any

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.session_store import Session
from sso.accounts.sign_in_extension import extended_sign_in
from sso.core.ban import BANNED, Ban
from sso.core.ids import digest, secret_token
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.oauth.authorization.code_at_sign_in import CodeAtSignIn
from sso.oauth.authorization.code_statements import CODE_AT_SIGN_IN, CODE_COLUMNS, IS_CODE_ISSUED, ISSUE_CODE
from sso.oauth.authorization.remembered import RememberedAuthorizations
from sso.oauth.clients.redirect_uris import match_redirect_uri
from sso.oauth.errors import AuthorizationError, AuthorizationFinished, InvalidRedirectUri
from sso.oauth.model import AuthorizationRequest, Client, PendingAuthorization

_SAVE = BatchStatement(
    """WITH item AS (
        SELECT * FROM {items}
    ), locked_clients AS (
        -- Rows are locked in key order, so that two batches cannot deadlock.
        SELECT client_id, CAST(xmin AS text) AS version FROM oauth_clients
        WHERE client_id = ANY (ARRAY(SELECT client_id FROM item))
        ORDER BY client_id FOR KEY SHARE {if_locked}
    ), saved AS (
        -- The pending authorizations of clients that still exist and have not changed.
        INSERT INTO oauth_requests (digest, client_id, redirect_uri, scopes, state, nonce, challenge, prompts,
            login_hint, sub, ui_locales, response_mode, dpop_jkt, resources, acr_values, claims, login_after, expires)
        SELECT digest, client_id, redirect_uri, string_to_array(scopes, ' '), state, nonce, challenge,
            string_to_array(prompts, ' '), login_hint, sub, ui_locales, response_mode, dpop_jkt,
            string_to_array(resources, ' '), string_to_array(acr_values, ' '), claims,
            now() - make_interval(secs => max_age), now() + make_interval(secs => lifetime_s)
        FROM item JOIN locked_clients USING (client_id) WHERE version = coalesce(client_version, version)
        RETURNING digest, created, expires, login_after
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
        "client_version": "text",
        "max_age": "float",
        "lifetime_s": "float",
    },
)
_FIND = BatchStatement(
    """SELECT item.n, c.*, r.redirect_uri, r.scopes, r.state, r.nonce, r.challenge, r.prompts, r.login_hint, r.sub,
        r.ui_locales, r.response_mode, r.dpop_jkt, r.resources, r.acr_values, r.claims, r.login_after,
        r.created AS request_created, r.expires, CAST(c.xmin AS text) AS client_version
    FROM {items}
    JOIN oauth_requests r ON r.digest = item.digest JOIN oauth_clients c USING (client_id)
    WHERE r.expires > now() AND NOT c.disabled""",
    columns={"digest": "bytea"},
)
# A client that has demanded a new sign-in, also with max_age, must still get one that proves who the user is.
_REQUIRE_NEW_LOGIN = Statement(
    """UPDATE oauth_requests SET login_after = now(),
        prompts = CASE WHEN login_after <= created THEN array_append(prompts, 'login') ELSE prompts END
    WHERE digest = :digest"""
)
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
        self._issue_code = SkipLockedBatch(database, ISSUE_CODE)
        self._issue_at_sign_in = extended_sign_in(
            database, "oauth.authorization.store.ISSUE_AT_SIGN_IN", CODE_AT_SIGN_IN, IS_CODE_ISSUED, CODE_COLUMNS
        )
        self._remembered = RememberedAuthorizations(database)

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
            client_version=request.client_version,
            max_age=0.0 if "login" in request.prompts else _seconds(request.max_age),
            lifetime_s=float(self._lifetime_s),
        )
        if row is None:
            raise InvalidRedirectUri("the client was changed or deleted during the request")
        return PendingAuthorization(request_id, request, row["created"], row["expires"], row["login_after"])

    def remember(self, pending: PendingAuthorization) -> None:
        """Keeps an authorization that was just saved, for the sign-in that follows."""
        if pending.request.client_version is not None:
            self._remembered.put(pending)

    def take_remembered(self, request_id: str) -> PendingAuthorization | None:
        """Returns the authorization once, as it was saved. It may have changed since: `issue_code` finds out."""
        return self._remembered.take(request_id)

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
            client_version=row["client_version"],
            **values,
        )

    async def require_new_login(self, request_id: str) -> None:
        """From now on the authorization accepts only a later sign-in, still as the client requires it."""
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
        """Returns a new code for the session's user, or None if the session has ended or the client has changed.

        Finishes ``pending``; raises AuthorizationFinished if it is finished already or demands a new sign-in. The code
        expires when ``pending`` does, or before, because the OAuth session begins with the authorization request and
        not with the sign-in. Raises AuthorizationError if the user is banned at the application of the client.
        """
        code = secret_token()
        row = await self._issue_code(
            user_id=session.user.user_id, session=digest(session.secret), **self._code_values(code, request, pending)
        )
        if row is None:
            return None
        if row["ban"]:
            raise AuthorizationError("access_denied", Ban.from_json(row["ban"]).description, recorded=BANNED)
        if not row["is_issued"]:
            raise AuthorizationFinished
        return code

    def code_at_sign_in(self, request: AuthorizationRequest, pending: PendingAuthorization) -> CodeAtSignIn:
        """Returns a code for the sign-in that finishes ``pending``: like `issue_code`, with the session's statement."""
        code = secret_token()
        return CodeAtSignIn(self._issue_at_sign_in, code, self._code_values(code, request, pending))

    def _code_values(
        self, code: str, request: AuthorizationRequest, pending: PendingAuthorization | None
    ) -> dict[str, Any]:
        """Returns the values of CODE_COLUMNS."""
        return {
            "code": digest(code),
            "client_id": request.client.client_id,
            "redirect_uri": request.redirect.uri,
            "scopes": " ".join(request.scopes),
            "nonce": request.nonce,
            "challenge": request.challenge,
            "dpop_jkt": request.dpop_jkt,
            "resources": " ".join(request.resources),
            "claims": request.claims,
            "expires": pending.expires if pending else None,
            "lifetime_s": float(request.client.rules.code_s or self._lifetime_s),
            "request": digest(pending.id) if pending else None,
            "login_after": pending.login_after if pending else None,
            "client_version": request.client_version,
        }

    async def finish(self, request_id: str) -> None:
        """Finishes the authorization without a code; raises AuthorizationFinished if it is finished already."""
        if await self._database.value(_FINISH, digest=digest(request_id)) is None:
            raise AuthorizationFinished


def _seconds(max_age: int | None) -> float | None:
    return None if max_age is None else float(max_age)
