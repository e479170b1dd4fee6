"""Authorization codes, grants and their tokens in the database. Each method is one transaction."""

import orjson
from msgspec import Struct

from sso.core.ban import Ban
from sso.core.ids import digest, secret_token
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.oauth.model import UNRESTRICTED, AccessToken, Client, IssuedTokens, TokenRestrictions
from sso.oauth.tokens.access_token_statements import (
    CHECK_ACCESS_TOKEN,
    FIND_ACCESS_TOKEN,
    INTROSPECT,
    REVOKE_ACCESS_TOKEN,
)
from sso.oauth.tokens.jwt_access_tokens import AccessTokenDigests
from sso.oauth.tokens.statements import (
    COUNT_FAILURE,
    IS_REFRESHABLE,
    REDEEM,
    REVOKE_GRANT,
    REVOKE_GRANT_OF_CODE,
    REVOKE_REFRESH_TOKEN,
    ROTATE,
)
from sso.oauth.tokens.successor_tokens import SuccessorTokens


class TokenLifetimes(Struct, frozen=True):
    """Lifetimes in seconds."""

    access_s: int
    refresh_s: int
    grant_max_s: int
    leeway_s: int
    session_s: int  # how long a browser session lasts


class RefusedCode(Struct, frozen=True):
    """The flags say which check failed. The code was not redeemed."""

    client: Client  # as it is in the database now
    code_client_id: str | None  # None if the code does not exist or has expired
    redirect_uri_matches: bool
    authenticated: bool
    holder_matches: bool  # the client and the verifier belong to the code
    is_redeemed: bool
    key_matches: bool
    resources_match: bool
    ban: Ban | None  # of the user


class RotationResult(Struct, frozen=True):
    """The result of presenting a refresh token.

    If ``issued`` is None, the flags say which check failed.
    """

    client: Client  # as it is in the database now
    authenticated: bool
    grant_exists: bool
    grant_redirect_uri: str | None
    redirect_uri_matches: bool
    grant_valid: bool
    key_matches: bool
    resources_match: bool
    scopes_match: bool
    is_current: bool  # the token is the newest one of the grant
    lost_race: bool  # all checks passed, but a concurrent transaction rotated the token first
    issued: IssuedTokens | None
    ban: Ban | None  # of the user


class TokenStore:
    def __init__(self, database: Database, lifetimes: TokenLifetimes, digests: AccessTokenDigests) -> None:
        self._database = database
        self.digests = digests
        self.lifetimes = lifetimes
        self._redeem = SkipLockedBatch(database, REDEEM)
        self._rotate = SkipLockedBatch(database, ROTATE)
        self._find_access_token = Batch(database, FIND_ACCESS_TOKEN)
        self._introspect = Batch(database, INTROSPECT)
        self._check_access_token = Batch(database, CHECK_ACCESS_TOKEN)

    async def count_failure(self, code: str) -> int:
        """Counts a failed attempt to redeem the code and returns the new count.

        After ``MAX_CODE_FAILURES`` attempts the code cannot be redeemed.
        """
        return await self._database.value(COUNT_FAILURE, digest=digest(code)) or 0

    async def redeem(
        self,
        client: Client | None,
        client_id: str,
        matched_secret: str | None,
        code: str,
        redirect_uri: str,
        challenge: str | None,
        access_token: str,
        restrictions: TokenRestrictions = UNRESTRICTED,
        *,
        may_redeem: bool,
    ) -> IssuedTokens | RefusedCode | None:
        """Redeems the code once, if all checks pass. Returns None if there is no such client.

        ``client_id`` is "" for the client of the code. ``matched_secret`` is the result of authenticating ``client``,
        and ``challenge`` that of the verifier in the request. The statement confirms that the client has not changed
        since. ``may_redeem`` is False if nothing may be issued yet: the result then says which checks would fail.
        """
        lifetimes = self.lifetimes
        row = await self._redeem(
            digest=digest(code),
            client_id=client_id,
            matched_secret=matched_secret,
            profile=client.profile if client else "",
            auth_method=client.token_endpoint_auth_method if client else "",
            client_redirects=orjson.dumps((client.redirect_hosts, client.redirect_uris)).decode() if client else None,
            redirect_uri=redirect_uri,
            challenge=challenge,
            may_redeem=may_redeem,
            dpop_jkt=restrictions.dpop_jkt,
            grant_jkt=restrictions.grant_jkt(client) if client else None,
            resources=restrictions.resource_text,
            grant_id=secret_token(),
            token_id=secret_token(),
            access_digest=digest(access_token),
            access_s=lifetimes.access_s,
            refresh_s=lifetimes.refresh_s,
            grant_max_s=lifetimes.grant_max_s,
            session_s=lifetimes.session_s,
        )
        if row is None:
            return None
        return IssuedTokens.from_row(row) if row["is_issued"] else _refused_code(row)

    async def revoke_grant_of_code(self, code: str) -> str | None:
        """Revokes the grant that the code was redeemed for, with its tokens. Returns its id, None if there is none."""
        return await self._revoke(REVOKE_GRANT_OF_CODE, digest=digest(code))

    async def rotate(
        self,
        client: Client,
        grant_id: str,
        token_id: str,
        redirect_uri: str,
        matched_secret: str | None,
        successors: SuccessorTokens,
        restrictions: TokenRestrictions = UNRESTRICTED,
    ) -> RotationResult | None:
        """Replaces the grant's current refresh token by a new one. Returns None if the client does not exist.

        If several calls present the same token concurrently, one of them succeeds. ``matched_secret`` is the result of
        authenticating ``client``; the statement confirms that the client has not changed since.
        """
        lifetimes = self.lifetimes
        row = await self._rotate(
            client_id=client.client_id,
            grant_id=grant_id,
            token_id=token_id,
            redirect_uri=redirect_uri,
            matched_secret=matched_secret,
            profile=client.profile,
            auth_method=client.token_endpoint_auth_method,
            dpop_jkt=restrictions.dpop_jkt,
            grant_jkt=restrictions.grant_jkt(client),
            resources=restrictions.resource_text,
            scopes=restrictions.scope_text,
            new_token_id=successors.token_id,
            access_digest=digest(successors.access_token),
            access_s=lifetimes.access_s,
            refresh_s=lifetimes.refresh_s,
            leeway_s=lifetimes.leeway_s,
            retry_s=successors.retry_s,
        )
        return _rotation_result(row, token_id) if row else None

    async def is_refreshable(self, grant_id: str, client_id: str, token_id: str, jkt: str) -> bool:
        """Returns whether `rotate` may succeed for this refresh token and a proof with this key."""
        return bool(
            await self._database.value(
                IS_REFRESHABLE, grant_id=grant_id, client_id=client_id, token_id=token_id, jkt=jkt
            )
        )

    async def revoke_refresh_token(self, grant_id: str, client_id: str, token_id: str) -> bool:
        """Revokes the grant and its access tokens if ``token_id`` is its valid current refresh token."""
        values = {"grant_id": grant_id, "client_id": client_id, "token_id": token_id}
        return await self._revoke(REVOKE_REFRESH_TOKEN, **values) is not None

    async def revoke_grant(self, grant_id: str, client_id: str) -> bool:
        """Revokes the grant and its access tokens. Returns False if the grant does not exist."""
        return await self._revoke(REVOKE_GRANT, grant_id=grant_id, client_id=client_id) is not None

    async def _revoke(self, statement: Statement, **values: str | bytes) -> str | None:
        """Returns the id of the grant. A transaction is tried again if it conflicts with a change of the user."""

        async def work(tx: Transaction) -> str | None:
            grant_id: str | None = await tx.value(statement, **values)
            return grant_id

        return await self._database.transaction(work)

    async def revoke_access_token(self, access_token: str, client_id: str) -> None:
        await self._database.value(REVOKE_ACCESS_TOKEN, digest=self.digests.of(access_token), client_id=client_id)

    async def find_access_token(self, access_token: str) -> AccessToken | None:
        """Returns None if the token is not valid. Reads the database each time, so that a revocation acts at once."""
        row = await self._find_access_token(digest=self.digests.of(access_token))
        return AccessToken.from_row(row) if row else None

    async def introspect(self, token: str, application_id: int) -> Row | None:
        """Returns a valid token of a user or of a service that a resource server of the application may ask about."""
        return await self._introspect(digest=self.digests.of(token), application_id=application_id)

    async def is_access_token_valid(self, digest: bytes, *, first_party: bool) -> bool:
        """Returns whether the access token is valid and, with ``first_party``, belongs to a first-party client."""
        row = await self._check_access_token(digest=digest)
        return row is not None and (row["first_party"] or not first_party)


def _refused_code(row: Row) -> RefusedCode:
    return RefusedCode(
        client=Client.from_row(row),
        code_client_id=row["code_client_id"],
        redirect_uri_matches=row["redirect_uri_matches"],
        authenticated=row["authenticated"],
        holder_matches=row["holder_matches"],
        is_redeemed=row["is_redeemed"],
        key_matches=row["key_matches"],
        resources_match=row["resources_match"],
        ban=Ban.from_json(row["ban"]) if row["ban"] else None,
    )


def _rotation_result(row: Row, token_id: str) -> RotationResult:
    issued = IssuedTokens.from_row(row) if row["grant_id"] is not None else None
    checks_passed = row["authenticated"] and row["redirect_uri_matches"] and row["grant_valid"] and row["key_matches"]
    checks_passed = checks_passed and row["resources_match"] and row["scopes_match"]
    is_current = row["snapshot_token_id"] == token_id
    return RotationResult(
        client=Client.from_row(row),
        authenticated=row["authenticated"],
        grant_exists=row["grant_exists"],
        grant_redirect_uri=row["grant_redirect_uri"],
        redirect_uri_matches=row["redirect_uri_matches"],
        grant_valid=row["grant_valid"],
        key_matches=row["key_matches"],
        resources_match=row["resources_match"],
        scopes_match=row["scopes_match"],
        is_current=is_current,
        lost_race=issued is None and checks_passed and is_current,
        issued=issued,
        ban=Ban.from_json(row["ban"]) if row["ban"] else None,
    )
