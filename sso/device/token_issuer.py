"""Issues the tokens of a confirmed device, under the claim of its poll.

The grant has the id of the claim. The statement locks the session and issues tokens only while it has this claim. A
later claim deletes the grant of the earlier one, so at most one set of tokens of a session is valid. The claim ``sid``
is the session of the device, which does not end with the browser's session.
"""

from dataclasses import dataclass
from typing import Any

from sso.accounts.errors import InvalidCredentials
from sso.core.ids import digest, secret_token
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.model import Claim, Claimed
from sso.oauth.model import DEVICE_CODE, Client, IssuedTokens, TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.issuer import TokenIssuer
from sso.oauth.tokens.statements import CLOCK, ISSUED, NEW_GRANTS, USER_CLAIMS
from sso.oauth.tokens.store import TokenLifetimes

# The user is locked before the session, as in all statements that issue something.
_ISSUE = Statement(
    f"""WITH {CLOCK}, locked_user AS (
        SELECT user_id FROM users WHERE user_id = :user_id AND valid_from = :valid_from AND NOT disabled FOR SHARE
    ), locked_session AS (
        -- The session, if this claim still has it.
        SELECT s.* FROM game_sessions s WHERE s.gsid = :gsid AND s.claim_id = :claim_id AND s.status = 'delivered'
            AND s.claimed_until IS NOT NULL AND s.auth_time IS NOT NULL
            AND s.user_id = (SELECT user_id FROM locked_user) FOR UPDATE
    ), replaced AS (
        -- The grant of an earlier claim, whose answer was lost.
        DELETE FROM oauth_grants
        WHERE id = (SELECT grant_id FROM locked_session) AND id <> CAST(:claim_id AS text)
    ), redeemed AS (
        UPDATE game_sessions s SET grant_id = :claim_id
        FROM locked_session l JOIN users u USING (user_id) JOIN oauth_clients c USING (client_id)
        WHERE s.gsid = l.gsid AND NOT c.disabled AND '{DEVICE_CODE}' = ANY (c.grant_types)
            AND (CAST(:dpop_jkt AS text) IS NOT NULL OR NOT c.dpop_bound_access_tokens)
        RETURNING s.grant_id, CAST(:access_digest AS bytea) AS access_digest, CAST(:access_s AS bigint) AS access_s,
            CAST(:refresh_s AS bigint) AS refresh_s, CAST(:grant_max_s AS bigint) AS grant_max_s,
            CASE WHEN 'offline_access' = ANY (l.scopes) AND 'refresh_token' = ANY (c.grant_types)
                THEN CAST(:token_id AS text) END AS current_token_id,
            c.client_id, c.profile, c.id_alg, c.access_token_format, u.user_id, {USER_CLAIMS}, '' AS redirect_uri,
            l.scopes, CAST(NULL AS text) AS nonce, l.auth_time, l.auth, s.gsid AS sid,
            c.backchannel_logout_uri <> '' AS is_notified, CAST(:grant_max_s AS bigint) AS session_s,
            greatest((SELECT t FROM clock), u.valid_from) AS issued, CAST(:dpop_jkt AS text) AS dpop_jkt,
            CAST(:grant_jkt AS text) AS grant_jkt, CAST('{{}}' AS text[]) AS grant_resources,
            CAST(:resources AS text[]) AS resources
    ), {NEW_GRANTS}
    SELECT redeemed.*, {ISSUED} FROM redeemed JOIN new_grants ON new_grants.id = redeemed.grant_id, clock"""
)
_REVOKE = Statement("DELETE FROM oauth_grants WHERE id = :claim_id")


class DeviceTokens:
    """Issues and revokes the tokens of devices."""

    def __init__(self, database: Database, lifetimes: TokenLifetimes, token_issuer: TokenIssuer) -> None:
        self._database = database
        self._lifetimes = lifetimes
        self._token_issuer = token_issuer

    async def issue(
        self, claim: Claim, claimed: Claimed, client: Client, restrictions: TokenRestrictions
    ) -> dict[str, Any]:
        """Returns the token response. Raises InvalidCredentials if the user or the client may not get tokens."""
        access_token, lifetimes = secret_token(), self._lifetimes
        row = await self._database.row(
            _ISSUE,
            gsid=claim.gsid,
            claim_id=claim.claim_id,
            user_id=claimed.user.user_id,
            valid_from=claimed.user.valid_from,
            access_digest=digest(access_token),
            token_id=secret_token(),
            access_s=lifetimes.access_s,
            refresh_s=lifetimes.refresh_s,
            grant_max_s=lifetimes.grant_max_s,
            dpop_jkt=restrictions.dpop_jkt,
            # RFC 9449 section 5: the refresh tokens of a public client are bound to its key.
            grant_jkt=restrictions.dpop_jkt if client.is_public else None,
            resources=list(restrictions.resources),
        )
        if row is None:
            raise InvalidCredentials
        return await self._token_issuer.token_response(IssuedTokens.from_row(row), access_token)

    async def revoke(self, claim: Claim) -> None:
        await self._database.value(_REVOKE, claim_id=claim.claim_id)


@dataclass(frozen=True)
class DeviceTokenIssuer:
    """Issues the tokens of one request."""

    tokens: DeviceTokens
    proofs: DpopProofs
    client: Client
    restrictions: TokenRestrictions
    proof: DpopProof | None

    async def issue(self, claim: Claim, claimed: Claimed) -> dict[str, Any]:
        """Uses the proof up and issues the tokens. The proof of a request that gets no tokens is not stored."""
        if self.proof:
            await self.proofs.use(self.proof)
        return await self.tokens.issue(claim, claimed, self.client, self.restrictions)

    async def revoke(self, claim: Claim) -> None:
        await self.tokens.revoke(claim)
