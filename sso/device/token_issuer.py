"""Issues the tokens of a confirmed device, under the claim of its poll.

The grant has the id of the claim. The statement locks the session and issues tokens only while it has this claim. A
later claim deletes the grant of the earlier one, so at most one set of tokens of a session is valid. The claim ``sid``
is the session of the device, which does not end with the browser's session.
"""

from typing import Any

from msgspec import Struct

from sso.accounts.errors import Banned, InvalidCredentials
from sso.core.ids import secret_token
from sso.device.session_store import DeviceTokenStore
from sso.gsid.model import Claim, Claimed
from sso.oauth.model import Client, TokenRestrictions
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.issuer import TokenIssuer


class DeviceTokens:
    """Issues and revokes the tokens of devices."""

    def __init__(self, store: DeviceTokenStore, token_issuer: TokenIssuer) -> None:
        self._store = store
        self._token_issuer = token_issuer

    async def issue(
        self, claim: Claim, claimed: Claimed, client: Client, restrictions: TokenRestrictions
    ) -> dict[str, Any]:
        """Returns the token response. Raises InvalidCredentials if the user or the client may not get tokens.

        Raises Banned if that is because of a ban.
        """
        access_token = secret_token()
        issued = await self._store.issue(claim, claimed, client, restrictions, access_token)
        if issued is None:
            if ban := await self._store.ban_of(claimed, client):
                raise Banned(ban, "")
            raise InvalidCredentials
        return await self._token_issuer.token_response(issued, access_token)

    async def revoke(self, claim: Claim) -> None:
        await self._store.revoke(claim)


class DeviceTokenIssuer(Struct, frozen=True):
    """Issues the tokens of one request."""

    tokens: DeviceTokens
    proofs: DpopProofs
    client: Client
    restrictions: TokenRestrictions
    proof: DpopProof | None

    async def issue(self, claim: Claim, claimed: Claimed) -> dict[str, Any]:
        """Uses the proof up and issues the tokens. The proof of a request that gets no tokens is not stored."""
        if self.proof:
            await self.proofs.use(self.proof, self.client.rules)
        return await self.tokens.issue(claim, claimed, self.client, self.restrictions)

    async def revoke(self, claim: Claim) -> None:
        await self.tokens.revoke(claim)
