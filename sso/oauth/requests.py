"""Authorizations, consents and new codes in the database. One method, one promise."""

from typing import Any

from sso.accounts.sessions import Session
from sso.core.ids import digest, secret_token
from sso.db.batch import Batch
from sso.db.bridge import Database, Row
from sso.db.statement import Statement
from sso.oauth.errors import Finished, NotTheirs
from sso.oauth.model import Client, Pending, Wanted
from sso.oauth.redirects import judge

_KEEP = Statement(
    """INSERT INTO oauth_requests (digest, client_id, redirect_uri, scopes, state, nonce, challenge, prompts,
        login_hint, sub, ui_locales, login_after, expires)
    VALUES (:digest, :client_id, :redirect_uri, :scopes, :state, :nonce, :challenge, :prompts, :login_hint, :sub,
        :ui_locales,
        now() - make_interval(secs => CAST(:max_age AS float)), now() + make_interval(secs => :life))"""
)
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
# The session is read here once more: of somebody who has just been signed out there will be no code. The locks make
# whoever is ending everything of this user go first or wait; the user's comes first, as theirs does. An authorization
# that was waiting is answered by this, once; it goes on waiting for whoever is not signed in any more.
_ISSUE = Statement(
    """WITH person AS (
        SELECT user_id, valid_from FROM users WHERE user_id = :user_id AND NOT disabled FOR SHARE
    ), present AS (
        SELECT s.created, person.user_id, person.valid_from FROM person JOIN browser_sessions s USING (user_id)
        WHERE s.id = :session_id AND s.expires > now() FOR SHARE OF s
    ), answered AS (
        DELETE FROM oauth_requests r USING present WHERE r.digest = CAST(:request AS bytea) AND r.expires > now()
        RETURNING r.digest
    ), made AS (
        INSERT INTO oauth_codes (digest, client_id, user_id, redirect_uri, scopes, nonce, challenge, auth_time, issued,
            expires)
        SELECT CAST(:digest AS bytea), c.client_id, user_id, CAST(:redirect_uri AS text), CAST(:scopes AS text[]),
            CAST(:nonce AS text), CAST(:challenge AS text), floor(extract(epoch FROM present.created)),
            greatest(floor(extract(epoch FROM now())), valid_from),
            coalesce(CAST(:expires AS timestamptz), now() + make_interval(secs => :life))
        FROM present, oauth_clients c WHERE c.client_id = :client_id AND NOT c.disabled
            AND (CAST(:request AS bytea) IS NULL OR EXISTS (SELECT FROM answered))
        RETURNING client_id, user_id, scopes
    ), agreed AS (
        INSERT INTO oauth_consents AS old (user_id, client_id, scopes)
        SELECT user_id, client_id, scopes FROM made WHERE CAST(:consented AS boolean)
        ON CONFLICT (user_id, client_id) DO UPDATE
        SET scopes = ARRAY(SELECT DISTINCT unnest(old.scopes || excluded.scopes)), created = now()
    )
    SELECT EXISTS (SELECT FROM present) AS present, EXISTS (SELECT FROM made) AS made"""
)
_AS_KEPT = ("state", "nonce", "challenge", "login_hint", "sub", "ui_locales")


class Requests:
    def __init__(self, database: Database, life_s: int, *, any_http: bool) -> None:
        self._database = database
        self._life_s = life_s
        self._any_http = any_http
        self._find = Batch(database, _FIND)

    async def keep(self, wanted: Wanted) -> str:
        """The id under which the authorization goes on once somebody has signed in or agreed."""
        request_id = secret_token()
        await self._database.value(
            _KEEP,
            digest=digest(request_id),
            client_id=wanted.client.client_id,
            redirect_uri=wanted.redirect.uri,
            scopes=list(wanted.scopes),
            state=wanted.state,
            nonce=wanted.nonce,
            challenge=wanted.challenge,
            prompts=sorted(wanted.prompts),
            login_hint=wanted.login_hint,
            sub=wanted.sub,
            ui_locales=wanted.ui_locales,
            max_age=0.0 if "login" in wanted.prompts else _seconds(wanted.max_age),
            life=float(self._life_s),
        )
        return request_id

    async def find(self, request_id: str) -> Pending | None:
        """None if it is too old. The redirect URI is judged again: the client may have changed meanwhile."""
        row = await self._find(digest(request_id))
        if row is None:
            return None
        return Pending(request_id, self._wanted(row), row["begun"], row["expires"], row["login_after"])

    def _wanted(self, row: Row) -> Wanted:
        client = Client.from_row(row)
        redirect = judge(row["redirect_uri"], client.redirect_hosts, client.redirect_uris, any_http=self._any_http)
        if redirect is None:
            raise NotTheirs
        values: dict[str, Any] = {name: row[name] for name in _AS_KEPT}
        return Wanted(
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

    async def issue_code(
        self, wanted: Wanted, session: Session, pending: Pending | None, consented: bool
    ) -> str | None:
        """A code for whoever is signed in, with their consent remembered; None if the session has just ended.

        Finished if the authorization has been answered already. The OAuth session counts from the authorization, so a
        code that follows a long sign-in lives less long.
        """
        code = secret_token()
        row = await self._database.row(
            _ISSUE,
            digest=digest(code),
            client_id=wanted.client.client_id,
            user_id=session.user.user_id,
            session_id=session.id,
            redirect_uri=wanted.redirect.uri,
            scopes=list(wanted.scopes),
            nonce=wanted.nonce,
            challenge=wanted.challenge,
            expires=pending.expires if pending else None,
            life=float(self._life_s),
            consented=consented,
            request=digest(pending.id) if pending else None,
        )
        assert row is not None
        if row["present"] and not row["made"]:
            raise Finished
        return code if row["made"] else None

    async def answer(self, request_id: str) -> None:
        """The authorization gets its answer, and no code; Finished if it has one already."""
        if await self._database.value(_ANSWER, digest=digest(request_id)) is None:
            raise Finished


def _seconds(max_age: int | None) -> float | None:
    return None if max_age is None else float(max_age)
