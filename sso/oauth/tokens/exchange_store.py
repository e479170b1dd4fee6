"""Exchanges access tokens of users for narrower ones (RFC 8693). An exchange is one transaction.

An exchanged token has a grant of its own, which belongs to the client that exchanged it, and refers to the token that
it was exchanged for: when that token is deleted, the database deletes the exchanged one. Its grant counts as issued
when the first one was. So whatever ends tokens of users ends exchanged ones, and no reader has to know of them.
"""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.ban import Ban
from sso.core.ids import digest, secret_token
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.oauth.errors import TooManyExchanges
from sso.oauth.model import Client, IssuedTokens
from sso.oauth.tokens.statements import CLOCK, USER_CLAIMS

MAX_EXCHANGES = 1000  # valid tokens that one access token is exchanged for
RETRY_AFTER_S = 60


class ExchangeSubject(NamedTuple):
    """A valid access token of a user that a client wants to exchange."""

    client_id: str  # the client that it was issued to, or that exchanged it last
    application_id: int  # of that client; 0: none
    scopes: tuple[str, ...]
    resources: tuple[str, ...]
    act: tuple[str, ...]  # the clients that have exchanged it, the last one first
    auth: str
    dpop_jkt: str | None
    ban: Ban | None  # of the user, at the application of one of both clients


class NewExchange(NamedTuple):
    """What the exchanged token is for."""

    subject: ExchangeSubject
    scopes: tuple[str, ...]
    resources: tuple[str, ...]
    act: tuple[str, ...]
    dpop_jkt: str | None


class ExchangedToken(NamedTuple):
    issued: IssuedTokens
    act: tuple[str, ...]


Narrow = Callable[[ExchangeSubject | None], NewExchange]

# The locks, in the order of all statements: the user, who may be about to be banned or signed out, the client, which
# may be about to lose its tokens, and the token, which may be about to be revoked, and whose exchanges are counted.
_LOCK_USER = Statement(
    """SELECT user_id FROM users WHERE user_id = (
        SELECT g.user_id FROM oauth_access_tokens a JOIN oauth_grants g ON g.id = a.grant_id WHERE a.digest = :digest
    ) AND NOT disabled FOR SHARE"""
)
_LOCK_CLIENT = Statement("SELECT * FROM oauth_clients WHERE client_id = :client_id FOR KEY SHARE")
_LOCK_SUBJECT = Statement(
    """SELECT a.digest, g.id AS grant_id, g.user_id, g.client_id, c.application_id,
        coalesce(a.scopes, g.scopes) AS scopes, g.act, g.auth, a.dpop_jkt, a.resources,
        ban_in_force(u.bans, ARRAY[c.application_id, CAST(:application_id AS int)]) AS ban
    FROM oauth_access_tokens a JOIN oauth_grants g ON g.id = a.grant_id JOIN users u ON u.user_id = g.user_id
    JOIN oauth_clients c ON c.client_id = g.client_id
    WHERE a.digest = :digest AND a.expires > now() AND NOT u.disabled AND g.issued >= u.valid_from AND NOT c.disabled
    FOR NO KEY UPDATE OF a FOR KEY SHARE OF g"""
)
# How many exchanged tokens the token has, and whether one of them is the same.
_COUNT = Statement(
    """SELECT count(*) AS number, coalesce(bool_or(same), false) AS is_repeated FROM (
        SELECT g.client_id = :client_id AND g.scopes = CAST(:scopes AS text[])
            AND a.resources = CAST(:resources AS text[]) AS same
        FROM oauth_access_tokens a JOIN oauth_grants g ON g.id = a.grant_id
        WHERE a.subject_digest = :digest LIMIT :limit
    ) exchanged"""
)
# The token never outlives the one that it is exchanged for. Its grant has no refresh token and no redirect URI.
_ISSUE = Statement(
    f"""WITH {CLOCK}, source AS (
        SELECT g.*, least(t + CAST(:access_s AS bigint), CAST(floor(extract(epoch FROM a.expires)) AS bigint)) AS until
        FROM clock, oauth_access_tokens a JOIN oauth_grants g ON g.id = a.grant_id WHERE a.digest = :digest
    ), new_grant AS (
        INSERT INTO oauth_grants AS g (id, client_id, user_id, scopes, auth_time, auth, sid, issued, act, dpop_jkt,
            resources, ends, last_used, expires)
        SELECT CAST(:grant_id AS text), CAST(:client_id AS text), user_id, CAST(:scopes AS text[]), auth_time, auth,
            sid, issued, CAST(:act AS text[]), CAST(:dpop_jkt AS text), CAST(:resources AS text[]), until, now(),
            to_timestamp(until)
        FROM source RETURNING g.*
    ), new_token AS (
        INSERT INTO oauth_access_tokens (digest, grant_id, expires, dpop_jkt, resources, subject_digest)
        SELECT :access_digest, id, expires, dpop_jkt, resources, CAST(:digest AS bytea) FROM new_grant
    )
    SELECT g.id AS grant_id, c.client_id, c.profile, c.id_alg, c.access_token_format, u.user_id, {USER_CLAIMS},
        g.scopes, CAST(NULL AS text) AS nonce, g.auth_time, g.auth, g.sid, g.dpop_jkt, g.resources, g.claims, t AS now,
        t AS issued_at, g.ends AS access_exp, CAST(NULL AS text) AS current_token_id,
        CAST(NULL AS bigint) AS current_token_issued, CAST(NULL AS bigint) AS current_token_exp
    FROM clock, new_grant g JOIN users u USING (user_id) JOIN oauth_clients c ON c.client_id = g.client_id"""
)


class ExchangeStore(Struct, frozen=True):
    database: Database
    access_s: int

    async def exchange(
        self,
        client: Client,
        subject_digest: bytes,
        access_token: str,
        address: str,
        narrow: Narrow,
    ) -> ExchangedToken | None:
        """Issues the exchanged token, or returns None if the client has changed since it was authenticated.

        ``narrow`` says what the new token is for, or raises an ApiError. It gets None if the subject token is not
        valid, and otherwise what cannot change before the token is issued.
        """
        return await self.database.transaction(self._exchange, client, subject_digest, access_token, address, narrow)

    async def _exchange(
        self,
        tx: Transaction,
        client: Client,
        subject_digest: bytes,
        access_token: str,
        address: str,
        narrow: Narrow,
    ) -> ExchangedToken | None:
        user_id = await tx.value(_LOCK_USER, digest=subject_digest)
        row = await tx.row(_LOCK_CLIENT, client_id=client.client_id)
        if row is None or Client.from_row(row) != client:
            return None
        new = narrow(None if user_id is None else await self._subject(tx, client, subject_digest))
        values = {
            "client_id": client.client_id,
            "scopes": list(new.scopes),
            "resources": list(new.resources),
            "digest": subject_digest,
        }
        count = await tx.row(_COUNT, limit=MAX_EXCHANGES, **values)
        assert count is not None  # an aggregate
        if count["number"] == MAX_EXCHANGES:
            raise TooManyExchanges(RETRY_AFTER_S)
        issued = await tx.row(
            _ISSUE,
            **values,
            act=list(new.act),
            dpop_jkt=new.dpop_jkt,
            grant_id=secret_token(),
            access_digest=digest(access_token),
            access_s=self.access_s,
        )
        assert issued is not None  # its source is locked
        if not count["is_repeated"]:
            actor = AuditActor(client_id=client.client_id, address=address)
            after = {"client_id": client.client_id, "act": list(new.act), "scopes": values["scopes"]}
            after |= {"resources": values["resources"], "subject_client_id": new.subject.client_id}
            await trail.write(tx, actor, "user.token_exchange", issued["user_id"], None, after)
        return ExchangedToken(IssuedTokens.from_row(issued), new.act)

    async def _subject(self, tx: Transaction, client: Client, subject_digest: bytes) -> ExchangeSubject | None:
        row = await tx.row(_LOCK_SUBJECT, digest=subject_digest, application_id=client.application_id)
        if row is None:
            return None
        ban = Ban.from_json(row["ban"]) if row["ban"] else None
        return ExchangeSubject(
            client_id=row["client_id"],
            application_id=row["application_id"],
            scopes=tuple(row["scopes"]),
            resources=tuple(row["resources"]),
            act=tuple(row["act"]),
            auth=row["auth"],
            dpop_jkt=row["dpop_jkt"],
            ban=ban,
        )
