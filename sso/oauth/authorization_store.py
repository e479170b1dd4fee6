"""Authorizations, consents and new codes in the database. One method, one promise."""

from typing import Any

from sso.accounts.sessions import Session
from sso.core.ids import digest, secret_token
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.oauth.errors import Finished, InvalidRedirectUri
from sso.oauth.model import AuthorizationRequest, Client, PendingAuthorization
from sso.oauth.redirect_uris import match_redirect_uri

_KEEP = """WITH item AS (
        SELECT * FROM unnest(
            CAST(:digests AS bytea[]), CAST(:clients AS text[]), CAST(:redirects AS text[]), CAST(:scopes AS text[]),
            CAST(:states AS bytea[]), CAST(:nonces AS text[]), CAST(:challenges AS text[]), CAST(:prompts AS text[]),
            CAST(:hints AS text[]), CAST(:subs AS text[]), CAST(:locales AS text[]), CAST(:max_ages AS float[]),
            CAST(:lives AS float[])
        ) WITH ORDINALITY AS item (digest, client_id, redirect_uri, scopes, state, nonce, challenge, prompts,
            login_hint, sub, ui_locales, max_age, life, n)
    ), site AS (
        SELECT client_id FROM oauth_clients WHERE client_id = ANY (ARRAY(SELECT client_id FROM item))
        ORDER BY client_id FOR KEY SHARE {if_locked}
    ), kept AS (
        INSERT INTO oauth_requests (digest, client_id, redirect_uri, scopes, state, nonce, challenge, prompts,
            login_hint, sub, ui_locales, login_after, expires)
        SELECT digest, client_id, redirect_uri, string_to_array(scopes, ' '), state, nonce, challenge,
            string_to_array(prompts, ' '), login_hint, sub, ui_locales, now() - make_interval(secs => max_age),
            now() + make_interval(secs => life)
        FROM item JOIN site USING (client_id) RETURNING digest, created, expires, login_after
    )
    SELECT item.n, kept.created, kept.expires, kept.login_after FROM kept JOIN item USING (digest)"""
_FIND = Statement(
    """SELECT item.n, c.*, r.redirect_uri, r.scopes, r.state, r.nonce, r.challenge, r.prompts, r.login_hint, r.sub,
        r.ui_locales, r.login_after, r.created AS begun, r.expires
    FROM unnest(CAST(:digests AS bytea[])) WITH ORDINALITY AS item (digest, n)
    JOIN oauth_requests r ON r.digest = item.digest JOIN oauth_clients c USING (client_id)
    WHERE r.expires > now() AND NOT c.disabled"""
)
_ASK_FOR_ANOTHER = Statement("UPDATE oauth_requests SET login_after = now(), sub = NULL WHERE digest = :digest")
# Once: who comes second finds nothing.
_ANSWER = Statement("DELETE FROM oauth_requests WHERE digest = :digest AND expires > now() RETURNING digest")
_CONSENTED = Statement("SELECT scopes FROM oauth_consents WHERE user_id = :user_id AND client_id = :client_id")
_CONSENT = Statement(
    """INSERT INTO oauth_consents AS old (user_id, client_id, scopes)
    SELECT u.user_id, c.client_id, CAST(:scopes AS text[])
    FROM users u JOIN browser_sessions s USING (user_id) JOIN oauth_clients c ON c.client_id = :client_id
    WHERE s.digest = :session AND s.expires > now() AND NOT u.disabled AND NOT c.disabled FOR SHARE OF u
    ON CONFLICT (user_id, client_id) DO UPDATE
    SET scopes = ARRAY(SELECT DISTINCT unnest(old.scopes || excluded.scopes)), created = now()"""
)
# The session is read here once more: of somebody who has just been signed out there will be no code. The locks make
# whoever is ending everything of this user go first or wait; the user's comes first, as theirs does, then the client's,
# and rows of a kind are locked in the order of their keys. An authorization that was waiting is answered by this, once;
# it goes on waiting for whoever is not signed in any more.
_ISSUE = """WITH item AS (
        SELECT * FROM unnest(
            CAST(:digests AS bytea[]), CAST(:clients AS text[]), CAST(:users AS text[]), CAST(:sessions AS bytea[]),
            CAST(:redirects AS text[]), CAST(:scopes AS text[]), CAST(:nonces AS text[]), CAST(:challenges AS text[]),
            CAST(:ends AS timestamptz[]), CAST(:lives AS float[]), CAST(:requests AS bytea[])
        ) WITH ORDINALITY AS item (digest, client_id, user_id, session, redirect_uri, scopes, nonce, challenge, ends,
            life, request, n)
    ), person AS (
        SELECT user_id, valid_from FROM users WHERE user_id = ANY (ARRAY(SELECT user_id FROM item)) AND NOT disabled
        ORDER BY user_id FOR SHARE {if_locked}
    ), site AS (
        SELECT client_id FROM oauth_clients WHERE client_id = ANY (ARRAY(SELECT client_id FROM item))
        ORDER BY client_id FOR KEY SHARE {if_locked}
    ), session AS (
        SELECT digest, user_id, created FROM browser_sessions
        WHERE digest = ANY (ARRAY(SELECT session FROM item JOIN person USING (user_id))) AND expires > now()
        ORDER BY digest FOR SHARE
    ), present AS (
        SELECT item.*, session.created, person.valid_from
        FROM item JOIN person USING (user_id) JOIN site USING (client_id)
            JOIN session ON session.digest = item.session AND session.user_id = item.user_id
    ), waiting AS (
        SELECT digest FROM oauth_requests WHERE digest = ANY (ARRAY(SELECT request FROM present)) AND expires > now()
        ORDER BY digest FOR UPDATE
    ), answered AS (
        DELETE FROM oauth_requests r USING waiting, present p WHERE r.digest = waiting.digest AND r.digest = p.request
        RETURNING p.n
    ), made AS (
        INSERT INTO oauth_codes (digest, client_id, user_id, redirect_uri, scopes, nonce, challenge, auth_time, issued,
            expires)
        SELECT p.digest, c.client_id, p.user_id, p.redirect_uri, string_to_array(p.scopes, ' '), p.nonce, p.challenge,
            floor(extract(epoch FROM p.created)), greatest(floor(extract(epoch FROM now())), p.valid_from),
            coalesce(p.ends, now() + make_interval(secs => p.life))
        FROM present p JOIN oauth_clients c ON c.client_id = p.client_id AND NOT c.disabled
        WHERE p.request IS NULL OR p.n IN (SELECT n FROM answered)
        RETURNING digest
    )
    SELECT n, digest IN (SELECT digest FROM made) AS made FROM present"""
_AS_KEPT = ("state", "nonce", "challenge", "login_hint", "sub", "ui_locales")


class AuthorizationStore:
    def __init__(self, database: Database, life_s: int, *, any_http: bool) -> None:
        self._database = database
        self._life_s = life_s
        self._any_http = any_http
        self._find = Batch(database, _FIND)
        self._keep = SkipLockedBatch(database, _KEEP)
        self._issue = SkipLockedBatch(database, _ISSUE)

    async def keep(self, wanted: AuthorizationRequest) -> PendingAuthorization:
        """The authorization, to go on once somebody has signed in or agreed."""
        request_id = secret_token()
        row = await self._keep(
            digest(request_id),
            wanted.client.client_id,
            wanted.redirect.uri,
            " ".join(wanted.scopes),
            wanted.state,
            wanted.nonce,
            wanted.challenge,
            " ".join(sorted(wanted.prompts)),
            wanted.login_hint,
            wanted.sub,
            wanted.ui_locales,
            0.0 if "login" in wanted.prompts else _seconds(wanted.max_age),
            float(self._life_s),
        )
        if row is None:
            raise InvalidRedirectUri("the client was changed or disabled meanwhile")
        return PendingAuthorization(request_id, wanted, row["created"], row["expires"], row["login_after"])

    async def find(self, request_id: str) -> PendingAuthorization | None:
        """None if it is too old. The redirect URI is judged again: the client may have changed meanwhile."""
        row = await self._find(digest(request_id))
        if row is None:
            return None
        return PendingAuthorization(request_id, self._wanted(row), row["begun"], row["expires"], row["login_after"])

    def _wanted(self, row: Row) -> AuthorizationRequest:
        client = Client.from_row(row)
        redirect = match_redirect_uri(
            row["redirect_uri"], client.redirect_hosts, client.redirect_uris, any_http=self._any_http
        )
        if isinstance(redirect, str):
            raise InvalidRedirectUri(redirect)
        values: dict[str, Any] = {name: row[name] for name in _AS_KEPT}
        return AuthorizationRequest(
            client=client,
            redirect=redirect,
            scopes=tuple(row["scopes"]),
            prompts=frozenset(row["prompts"]),
            **values,
        )

    async def ask_for_another(self, request_id: str) -> None:
        """Only a sign-in from now on counts."""
        await self._database.value(_ASK_FOR_ANOTHER, digest=digest(request_id))

    async def consented(self, user_id: str, client_id: str) -> frozenset[str]:
        scopes = await self._database.value(_CONSENTED, user_id=user_id, client_id=client_id)
        return frozenset(scopes or ())

    async def consent(self, session: Session, wanted: AuthorizationRequest) -> None:
        """Whoever is signed in has agreed to it."""
        client_id, scopes = wanted.client.client_id, list(wanted.scopes)
        await self._database.value(_CONSENT, session=digest(session.secret), client_id=client_id, scopes=scopes)

    async def issue_code(
        self, wanted: AuthorizationRequest, session: Session, pending: PendingAuthorization | None
    ) -> str | None:
        """A code for whoever is signed in; None if the session has just ended.

        Finished if the authorization has been answered already. The OAuth session counts from the authorization, so a
        code that follows a long sign-in lives less long.
        """
        code = secret_token()
        row = await self._issue(
            digest(code),
            wanted.client.client_id,
            session.user.user_id,
            digest(session.secret),
            wanted.redirect.uri,
            " ".join(wanted.scopes),
            wanted.nonce,
            wanted.challenge,
            pending.expires if pending else None,
            float(self._life_s),
            digest(pending.id) if pending else None,
        )
        if row is None:
            return None
        if not row["made"]:
            raise Finished
        return code

    async def answer(self, request_id: str) -> None:
        """The authorization gets its answer, and no code; Finished if it has one already."""
        if await self._database.value(_ANSWER, digest=digest(request_id)) is None:
            raise Finished


def _seconds(max_age: int | None) -> float | None:
    return None if max_age is None else float(max_age)
