"""GET and POST /proxy/oauth/userinfo: the claims about the user that the scopes of an access token allow."""

from typing import Any

from sso.oauth.clients.profiles import RULES
from sso.oauth.errors import InvalidAccessToken, InvalidBoundToken, InvalidDpopProof, MissingOpenidScope
from sso.oauth.model import AccessToken
from sso.oauth.tokens.claims import requested_claims, scope_claims
from sso.oauth.tokens.dpop import DpopProof, DpopProofs
from sso.oauth.tokens.store import TokenStore


async def require_access_token(
    token_store: TokenStore, access_token: str, *, accepts_dpop: bool = False
) -> AccessToken:
    """Returns the access token of a request with the scheme Bearer, with which a bound token is refused."""
    access = await token_store.find_access_token(access_token) if access_token else None
    if access is None or access.dpop_jkt is not None:
        raise InvalidAccessToken(accepts_dpop=accepts_dpop)
    return access


async def require_bound_token(
    token_store: TokenStore, proofs: DpopProofs, access_token: str, proof: DpopProof | None
) -> AccessToken:
    """Returns the access token of a request with the scheme DPoP. The proof, which has its hash, is used up."""
    access = await token_store.find_access_token(access_token)
    if access is None or access.dpop_jkt is None:
        raise InvalidBoundToken
    if proof is None or proof.jkt != access.dpop_jkt:
        expected = "DPoP: expected a proof with the key that the access token is bound to"
        raise InvalidBoundToken(InvalidDpopProof(expected))
    try:
        await proofs.use(proof, RULES[access.profile])
    except InvalidDpopProof as error:
        raise InvalidBoundToken(error) from None
    return access


def userinfo_claims(access: AccessToken) -> dict[str, Any]:
    if "openid" not in access.scopes:  # an exchanged or a refreshed token, whose client wanted less
        raise MissingOpenidScope
    claims: dict[str, Any] = {"status": "ok", "sub": access.user_id, **scope_claims(access)}
    claims |= requested_claims(access, "userinfo", phone_verified=access.phone_verified)
    if "trust" in access.scopes:
        claims |= {"email_verified": access.email_verified, "phone_verified": access.phone_verified}
    return claims
