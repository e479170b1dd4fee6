"""Codes, grants and access tokens in the database: what may happen once is one statement.

Whether the user and the client still may is judged in the same statement: nothing that ended is served once more.
"""

from dataclasses import dataclass
from typing import Any

import orjson

from sso.core.ids import digest, secret_token
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.oauth.model import AccessToken, Client, IssuedTokens

CODE_FAILURES = 20
CLOCK = "clock AS (SELECT CAST(floor(extract(epoch FROM now())) AS bigint) AS t)"
# ``proof`` is the sealed secret that the caller has proved to know, "" for a public client: it must still be one of the
# client's, and the client still one that may prove itself so.
_PROVED = """NOT c.disabled AND c.profile = item.profile AND (item.proof IN (c.secret_sealed, c.second_sealed)
                OR (item.proof = '' AND c.secret_sealed IS NULL AND c.profile = 'oidc'))"""

# The client that is named, or else the one that the code names.
_FIND_CODE = Statement(
    """SELECT item.n, c.*, k.client_id AS code_client, k.redirect_uri AS code_uri, k.challenge,
        k.redeemed IS NOT NULL AS used
    FROM unnest(CAST(:digests AS bytea[]), CAST(:named AS text[])) WITH ORDINALITY AS item (digest, named, n)
    LEFT JOIN oauth_codes k ON k.digest = item.digest AND k.expires > now()
    JOIN oauth_clients c ON c.client_id = coalesce(nullif(item.named, ''), k.client_id)"""
)
_COUNT_FAILURE = Statement(
    "UPDATE oauth_codes SET failures = failures + 1 WHERE digest = :digest AND redeemed IS NULL RETURNING failures"
)
# Rows are locked in the order of their keys, so that two batches never wait for each other in a circle.
# ``addresses`` are those by which the redirect_uri was found to be the client's.
_REDEEM = Statement(
    f"""WITH {CLOCK}, item AS (
        SELECT * FROM unnest(
            CAST(:digests AS bytea[]), CAST(:clients AS text[]), CAST(:proofs AS text[]), CAST(:profiles AS text[]),
            CAST(:addresses AS text[]), CAST(:redirects AS text[]), CAST(:challenges AS text[]),
            CAST(:grants AS text[]), CAST(:heads AS text[]), CAST(:access AS bytea[]),
            CAST(:access_s AS bigint[]), CAST(:refresh_s AS bigint[]), CAST(:longest_s AS bigint[])
        ) WITH ORDINALITY AS item (digest, client_id, proof, profile, addresses, redirect_uri, challenge, grant_id,
            head, access, access_s, refresh_s, longest_s, n)
    ), locked AS (
        SELECT * FROM oauth_codes WHERE digest = ANY (ARRAY(SELECT digest FROM item))
        ORDER BY digest FOR NO KEY UPDATE
    ), good AS (
        SELECT k.digest, item.n, item.grant_id, item.access, item.access_s, item.refresh_s, item.longest_s,
            CASE WHEN 'offline_access' = ANY (k.scopes) THEN item.head END AS head,
            k.client_id, c.profile, c.id_alg, k.user_id, u.login, u.nick, k.redirect_uri, k.scopes, k.nonce,
            k.auth_time, k.issued
        FROM item JOIN locked k USING (digest, client_id, redirect_uri)
            JOIN users u USING (user_id) JOIN oauth_clients c USING (client_id)
        WHERE k.expires > now() AND k.failures < {CODE_FAILURES} AND NOT u.disabled AND k.issued >= u.valid_from
            AND k.challenge IS NOT DISTINCT FROM item.challenge AND {_PROVED}
            AND jsonb_build_array(c.redirect_hosts, c.redirect_uris) = CAST(item.addresses AS jsonb)
    ), used AS (
        UPDATE oauth_codes k SET redeemed = now(), grant_id = good.grant_id, expires = now() + interval '1 day'
        FROM good WHERE k.digest = good.digest AND k.redeemed IS NULL
        RETURNING good.*
    ), made AS (
        INSERT INTO oauth_grants AS g (id, client_id, user_id, redirect_uri, scopes, nonce, auth_time, issued, ends,
            head, head_issued, head_exp, last_used, expires)
        SELECT grant_id, client_id, user_id, redirect_uri, scopes, nonce, auth_time, issued, t + longest_s,
            head, CASE WHEN head IS NOT NULL THEN t END,
            CASE WHEN head IS NOT NULL THEN t + least(refresh_s, longest_s) END, now(),
            to_timestamp(t + least(longest_s, CASE WHEN head IS NULL THEN access_s ELSE refresh_s END))
        FROM used, clock
        RETURNING g.id, g.head_issued, g.head_exp
    ), given AS (
        INSERT INTO oauth_access_tokens (digest, grant_id, expires)
        SELECT access, grant_id, to_timestamp(t + least(access_s, longest_s)) FROM used, clock
    )
    SELECT used.*, t AS now, t + least(access_s, longest_s) AS access_exp, made.head_issued, made.head_exp
    FROM used JOIN made ON made.id = used.grant_id, clock"""  # noqa: S608 - nothing but constants
)
_END_WHAT_IT_GAVE = Statement(
    """DELETE FROM oauth_grants g USING oauth_codes k
    WHERE k.digest = :digest AND g.id = k.grant_id RETURNING g.id"""
)
# ``given`` are the rows that get new tokens: those that turned the head, and retries within the leeway.
_ROTATE = Statement(
    f"""WITH {CLOCK}, item AS (
        SELECT * FROM unnest(
            CAST(:clients AS text[]), CAST(:grants AS text[]), CAST(:heads AS text[]), CAST(:redirects AS text[]),
            CAST(:proofs AS text[]), CAST(:profiles AS text[]), CAST(:new_heads AS text[]), CAST(:access AS bytea[]),
            CAST(:access_s AS bigint[]), CAST(:refresh_s AS bigint[]), CAST(:leeway_s AS bigint[])
        ) WITH ORDINALITY AS item (client_id, grant_id, head, redirect_uri, proof, profile, new_head, access, access_s,
            refresh_s, leeway_s, n)
    ), locked AS (
        SELECT id FROM oauth_grants WHERE id = ANY (ARRAY(SELECT grant_id FROM item)) ORDER BY id FOR NO KEY UPDATE
    ), seen AS (
        SELECT item.*, u.login, u.nick, g.head AS seen_head, g.redirect_uri AS bound_uri, g.id IS NOT NULL AS found,
            coalesce({_PROVED}, false) AS proved,
            coalesce(g.redirect_uri = item.redirect_uri OR (item.redirect_uri = '' AND c.profile = 'oidc'), false)
                AS same_uri,
            coalesce(NOT u.disabled AND g.issued >= u.valid_from AND g.head_exp > t AND g.ends > t, false) AS alive
        FROM clock, item JOIN oauth_clients c ON c.client_id = item.client_id
        LEFT JOIN oauth_grants g ON g.id = item.grant_id AND g.client_id IS NOT DISTINCT FROM item.client_id
        LEFT JOIN users u ON u.user_id = g.user_id
    ), turned AS (
        UPDATE oauth_grants g SET head = s.new_head, previous = g.head, rotated = now(), last_used = now(),
            head_issued = t, head_exp = least(t + s.refresh_s, g.ends),
            expires = to_timestamp(greatest(least(t + s.refresh_s, g.ends), least(t + s.access_s, g.ends)))
        FROM clock, locked, seen s
        WHERE g.id = locked.id AND g.id = s.grant_id AND g.head = s.head AND s.proved AND s.same_uri AND s.alive
        RETURNING s.n, g.id, g.user_id, g.scopes, g.nonce, g.auth_time, g.ends, g.head, g.head_issued, g.head_exp
    ), again AS (
        SELECT s.n, g.id, g.user_id, g.scopes, g.nonce, g.auth_time, g.ends, g.head, g.head_issued, g.head_exp
        FROM seen s JOIN locked ON locked.id = s.grant_id JOIN oauth_grants g ON g.id = locked.id
        -- Without a leeway not even for an instant: who began earlier may come later, and see a moment in its future.
        WHERE g.previous = s.head AND s.leeway_s > 0 AND g.rotated > now() - make_interval(secs => s.leeway_s)
            AND s.proved AND s.same_uri AND s.alive AND NOT EXISTS (SELECT FROM turned WHERE turned.id = g.id)
    ), given AS (
        SELECT * FROM turned UNION ALL SELECT * FROM again
    ), access AS (
        INSERT INTO oauth_access_tokens (digest, grant_id, expires)
        SELECT s.access, given.id, to_timestamp(least(t + s.access_s, given.ends))
        FROM clock, given JOIN seen s ON s.n = given.n
    )
    SELECT c.*, s.n, s.found, s.proved, s.same_uri, s.alive, s.bound_uri, s.seen_head, s.login, s.nick,
        given.id AS grant_id, given.user_id, given.scopes, given.nonce, given.auth_time, given.head, given.head_issued,
        given.head_exp, t AS now, least(t + s.access_s, given.ends) AS access_exp
    FROM clock, seen s JOIN oauth_clients c ON c.client_id = s.client_id LEFT JOIN given ON given.n = s.n"""  # noqa: S608
)
_REVOKE_HEAD = Statement(
    """DELETE FROM oauth_grants g USING users u
    WHERE g.id = :grant_id AND g.client_id = :client_id AND g.head = :head
        AND u.user_id = g.user_id AND NOT u.disabled AND g.issued >= u.valid_from
        AND g.head_exp > extract(epoch FROM now())
    RETURNING g.id"""
)
_REVOKE_GRANT = Statement("DELETE FROM oauth_grants WHERE id = :grant_id AND client_id = :client_id RETURNING id")
_REVOKE_ACCESS = Statement(
    """DELETE FROM oauth_access_tokens a USING oauth_grants g
    WHERE a.digest = :digest AND g.id = a.grant_id AND g.client_id = :client_id"""
)
_LOOK_UP = Statement(
    f"""WITH {CLOCK}
    SELECT item.n, u.user_id, u.login, u.nick, u.email_verified, u.phone_verified, u.valid_from, g.scopes,
        c.client_id, c.first_party, CAST(floor(extract(epoch FROM a.expires)) AS bigint) AS exp, t AS now,
        g.auth_time
    FROM clock, unnest(CAST(:digests AS bytea[])) WITH ORDINALITY AS item (digest, n)
    JOIN oauth_access_tokens a ON a.digest = item.digest JOIN oauth_grants g ON g.id = a.grant_id
    JOIN users u ON u.user_id = g.user_id JOIN oauth_clients c ON c.client_id = g.client_id
    WHERE a.expires > now() AND NOT u.disabled AND g.issued >= u.valid_from AND NOT c.disabled"""  # noqa: S608 - the part is ours
)


@dataclass(frozen=True)
class TokenLifetimes:
    """Seconds."""

    access_s: int
    refresh_s: int
    longest_s: int
    leeway_s: int


@dataclass(frozen=True)
class StoredCode:
    client: Client
    code_client: str | None  # None: there is no such code, or it is too old
    redirect_uri: str
    challenge: str | None
    used: bool


@dataclass(frozen=True)
class RotationResult:
    """How the presentation of a refresh token ended. ``issued`` is what to make tokens of; without it the rest says
    what was wrong, in this order."""

    client: Client
    proved: bool
    found: bool
    bound_uri: str | None
    same_uri: bool
    alive: bool
    raced: bool  # it was the newest when the statement began, and no longer when it came to it
    issued: IssuedTokens | None


class TokenStore:
    def __init__(self, database: Database, lives: TokenLifetimes) -> None:
        self._database = database
        self._lives = lives
        self._find_code = Batch(database, _FIND_CODE)
        self._redeem = Batch(database, _REDEEM)
        self._rotate = Batch(database, _ROTATE)
        self._look_up = Batch(database, _LOOK_UP)

    async def find_code(self, code: str, named: str) -> StoredCode | None:
        """None if neither the request nor the code names a client that there is."""
        row = await self._find_code(digest(code), named)
        if row is None:
            return None
        return StoredCode(
            Client.from_row(row), row["code_client"], row["code_uri"] or "", row["challenge"], bool(row["used"])
        )

    async def count_failure(self, code: str) -> int:
        """A party that could not prove to be the client held this code; at 20 the code is worth nothing."""
        return await self._database.value(_COUNT_FAILURE, digest=digest(code)) or 0

    async def redeem(
        self, client: Client, proof: str, code: str, redirect_uri: str, challenge: str | None, access_token: str
    ) -> IssuedTokens | None:
        """Once per code, and only in time, for a user and a client who still may; None otherwise.

        ``client`` is who the caller took it for when it judged the ``proof`` and the ``redirect_uri``; ``challenge`` is
        the one that was answered. The code must be of all these, and the client still what it was taken for.
        """
        lives = self._lives
        addresses = orjson.dumps((client.redirect_hosts, client.redirect_uris)).decode()
        row = await self._redeem(
            digest(code), client.client_id, proof, client.profile, addresses, redirect_uri, challenge, _id(), _id(),
            digest(access_token), lives.access_s, lives.refresh_s, lives.longest_s,
        )  # fmt: skip
        return IssuedTokens.from_row(row) if row else None

    async def end_what_it_gave(self, code: str) -> str | None:
        """The tokens of a code are worth nothing any more; the id of the grant that ended, if one did."""
        ended: str | None = await self._database.value(_END_WHAT_IT_GAVE, digest=digest(code))
        return ended

    async def rotate(
        self, client: Client, grant_id: str, head: str, redirect_uri: str, proof: str | None, access_token: str
    ) -> RotationResult | None:
        """The newest refresh token becomes the next one, for whoever comes first; None: there is no such client.

        ``client`` is who the caller took it for when it judged the ``proof``; None is no proof.
        """
        lives = self._lives
        row = await self._rotate(
            client.client_id, grant_id, head, redirect_uri, proof, client.profile, _id(), digest(access_token),
            lives.access_s, lives.refresh_s, lives.leeway_s,
        )  # fmt: skip
        return _turn(row, head) if row else None

    async def revoke(self, grant_id: str, client_id: str, head: str) -> bool:
        """The grant and its access tokens end, if this is its live refresh token."""
        found = await self._database.value(_REVOKE_HEAD, grant_id=grant_id, client_id=client_id, head=head)
        return found is not None

    async def revoke_grant(self, grant_id: str, client_id: str) -> bool:
        """The grant and its access tokens end; False if it had ended before."""
        return await self._database.value(_REVOKE_GRANT, grant_id=grant_id, client_id=client_id) is not None

    async def revoke_access(self, access_token: str, client_id: str) -> None:
        await self._database.value(_REVOKE_ACCESS, digest=digest(access_token), client_id=client_id)

    async def look_up(self, access_token: str) -> AccessToken | None:
        """Read each time, so what ended is ended."""
        row = await self._look_up(digest(access_token))
        return AccessToken.from_row(row) if row else None


def _id() -> str:
    return secret_token()


def _turn(row: Row, head: str) -> RotationResult:
    given: Any = IssuedTokens.from_row(row) if row["grant_id"] is not None else None
    return RotationResult(
        client=Client.from_row(row),
        proved=row["proved"],
        found=row["found"],
        bound_uri=row["bound_uri"],
        same_uri=row["same_uri"],
        alive=row["alive"],
        raced=given is None and row["proved"] and row["same_uri"] and row["alive"] and row["seen_head"] == head,
        issued=given,
    )
